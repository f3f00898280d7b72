"use strict";
// What the page is given.

const given = JSON.parse(document.getElementById("data").textContent);

function bytes(text) {
  const raw = atob(text);
  const all = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) all[i] = raw.charCodeAt(i);
  return all.buffer;
}

const numbers = (text) => new Float64Array(bytes(text));
