// A film of the page, recorded while it plays once: MP4 where the browser can write it, else WebM.

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
  for (const tag of element("panels").querySelectorAll(".name, .label, .said, .end, .what")) {
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
    const film = new Blob(pieces, { type: format.split(";")[0] });
    if (film.size) save(film);
    else element("note").textContent = "This browser recorded nothing; `polhode export run.nc --to mp4` writes a film, too";
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
  recording.start();
  play(true);
  return recording;
}

function save(film) {
  const name = `${document.title.replace(/[^\w-]+/g, "_") || "film"}.${film.type.endsWith("mp4") ? "mp4" : "webm"}`;
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(film), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

element("record").hidden = !format || !(END > START);
element("record").addEventListener("click", record);
