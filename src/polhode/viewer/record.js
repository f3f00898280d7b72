// A film of the page, recorded while it plays once: MP4 where the browser can write it, else WebM. An animated GIF, picture by picture.

const FORMATS = ["video/mp4;codecs=avc1.42E01F", "video/mp4", "video/webm;codecs=vp9", "video/webm"];
const format = window.MediaRecorder && renderer && FORMATS.find((kind) => MediaRecorder.isTypeSupported(kind));
const LAST = 800; // milliseconds that the last picture is shown
let recording = null;

/** The stage with its words on one canvas: the scene itself holds no text. */
function copyStage(sheet) {
  const pen = sheet.getContext("2d"), stage = element("stage").getBoundingClientRect(), ratio = sheet.width / stage.width;
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.drawImage(canvas, 0, 0, sheet.width, sheet.height);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.textBaseline = "middle";
  for (const tag of element("panels").querySelectorAll(".name, .how, .entry, .label, .said, .end, .what")) {
    const style = getComputedStyle(tag), place = tag.getBoundingClientRect();
    if (style.display === "none" || !tag.textContent) continue;
    pen.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    pen.fillStyle = style.color;
    const lines = tag.textContent.split("\n"), high = place.height / lines.length, left = place.left - stage.left + parseFloat(style.paddingLeft);
    lines.forEach((line, i) => pen.fillText(line, left, place.top - stage.top + (i + 0.5) * high));
  }
  if (stage.width < 400) return; // numbers stand where the clock would
  pen.font = "13px system-ui, sans-serif";
  pen.fillStyle = getComputedStyle(document.body).color;
  pen.textAlign = "right";
  pen.fillText(element("clock").textContent, stage.width - 10, stage.height - 14);
  pen.textAlign = "left";
}

/** Play from the start to the end at the chosen speed, and hand the film over when it ends or is stopped. */
function record() {
  if (recording) return recording.stop();
  const even = (x) => 2 * Math.round(x / 2);
  const sheet = Object.assign(document.createElement("canvas"), { width: even(canvas.width), height: even(canvas.height), className: "recorded" });
  document.body.append(sheet); // browsers record nothing that is not on the screen
  const pieces = [], loop = now.loop, stream = sheet.captureStream(0);
  recording = new MediaRecorder(stream, { mimeType: format, videoBitsPerSecond: 6e6 });
  recording.ondataavailable = ({ data }) => pieces.push(data);
  recording.onstop = () => {
    afterRefresh = null;
    now.loop = loop;
    recording = null;
    sheet.remove();
    play(false);
    element("record").textContent = "Record";
    element("gif").disabled = false;
    const film = new Blob(pieces, { type: format.split(";")[0] });
    if (film.size) save(film);
    else element("note").textContent = "This browser recorded nothing; `polhode export run.nc --to mp4` also writes a film";
  };
  play(false);
  seek(START);
  const take = () => {
    copyStage(sheet);
    stream.getVideoTracks()[0].requestFrame();
  };
  afterRefresh = () => {
    take();
    if (now.playing || !recording) return;
    afterRefresh = null;
    setTimeout(take, LAST / 2); // the last picture stays, and the encoder has time for it
    setTimeout(() => { if (recording) recording.stop(); }, LAST);
  };
  now.loop = false;
  element("record").textContent = "Stop";
  element("gif").disabled = true;
  recording.start();
  play(true);
  return recording;
}

// --- GIF ---------------------------------------------------------------------------------------------------

const WIDEST = 640, MOST_PICTURES = 400; // pixels, pictures
const DELAYS = [4, 5, 10]; // hundredths of a second between two pictures, which all browsers show as they are
const TRIED = 9; // pictures from which the colours are chosen
let making = false;

/** The times of the pictures and the delay between them, at the chosen speed; a long run is shown faster. */
function pictureTimes() {
  const hundredths = 100 * (END - START) / now.speed;
  const delay = DELAYS.find((one) => hundredths / one < MOST_PICTURES) || DELAYS[DELAYS.length - 1];
  const number = Math.max(1, Math.min(MOST_PICTURES - 1, Math.round(hundredths / delay)));
  const times = Array.from({ length: number + 1 }, (_, i) => START + i * (END - START) / number);
  return { times, delay, faster: hundredths / (delay * number) };
}

/** Write the pictures one by one; a second click ends the file early. */
async function makeGif() {
  if (making) return void (making = false);
  making = true;
  const time = now.time, stage = element("stage").getBoundingClientRect(), width = Math.round(Math.min(WIDEST, stage.width));
  const sheet = Object.assign(document.createElement("canvas"), { width, height: Math.round(width * stage.height / stage.width) });
  const pen = sheet.getContext("2d", { willReadFrequently: true });
  const pictureAt = (t) => {
    seek(t);
    copyStage(sheet);
    return pen.getImageData(0, 0, sheet.width, sheet.height).data;
  };
  play(false);
  element("record").disabled = true;
  element("gif").textContent = "Stop";
  const { times, delay, faster } = pictureTimes(), palette = new Palette();
  for (let i = 0; i < TRIED; i++) palette.count(pictureAt(times[Math.round(i * (times.length - 1) / (TRIED - 1))]));
  const gif = new Gif(sheet.width, sheet.height, delay, palette.finish());
  for (let i = 0; i < times.length && making; i++) {
    const last = i === times.length - 1;
    gif.add(pictureAt(times[i]), last ? LAST / 10 : delay);
    await new Promise((later) => setTimeout(later)); // clicks are heard
  }
  making = false;
  element("gif").textContent = "Save GIF";
  element("record").disabled = false;
  seek(time);
  if (faster > 1.1) element("note").textContent = `The GIF has ${times.length} frames and plays ${faster.toFixed(1)} times as fast as chosen`;
  save(gif.file());
}

// --- files -------------------------------------------------------------------------------------------------

const SUFFIXES = { "video/mp4": "mp4", "video/webm": "webm", "image/gif": "gif" };

function save(film) {
  const name = `${document.title.replace(/[^\w-]+/g, "_") || "film"}.${SUFFIXES[film.type]}`;
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(film), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

element("record").hidden = !format || !(END > START);
element("record").addEventListener("click", record);
element("gif").hidden = !renderer || !(END > START);
element("gif").addEventListener("click", makeGif);
