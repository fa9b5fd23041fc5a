// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Bundles main.js and its imports into one script without imports, preceded by the licences of
// third-party parts. The hash is what lets the page run this script and no other.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

function licences(inputs) {
  const folders = new Set(inputs.map((path) => /^node_modules\/(@[^/]+\/)?[^/]+/.exec(path)?.[0]).filter(Boolean));
  const texts = [...folders].sort().map((folder) => {
    const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
    if (!file) throw new Error(`${folder}: no licence`);
    return `${folder.slice("node_modules/".length)}\n${readFileSync(`${folder}/${file}`, "utf8")}`;
  });
  return `/*\n${texts.join("\n").replaceAll("*/", "* /")}*/\n`;
}

const { metafile, outputFiles } = await build({
  entryPoints: ["main.js"],
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  format: "iife",
  target: "es2020",
  charset: "ascii",
  logLevel: "warning",
});
const script = (licences(Object.keys(metafile.inputs)) + outputFiles[0].text).replace(/<\/script/gi, "<\\/script");
if (/[^\n\x20-\x7e]/.test(script.replaceAll("\t", ""))) console.warn("not plain ASCII");
writeFileSync("bundle.js", script);
writeFileSync("bundle.sha256", createHash("sha256").update(script).digest("base64"));
