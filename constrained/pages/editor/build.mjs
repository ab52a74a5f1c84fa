// Bundles codemirror.js into static/vendor/, and beside it the licence and the exact versions of what is in it.
import { readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const VENDOR = new URL("../static/vendor/", import.meta.url);
const HERE = new URL("./", import.meta.url);

const { metafile } = await build({
  absWorkingDir: HERE.pathname,
  entryPoints: ["codemirror.js"],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "none", // all of them are in the licence file
  outfile: new URL("codemirror.js", VENDOR).pathname,
  metafile: true,
});

const inside = Object.values(metafile.outputs)[0].inputs;
const used = Object.keys(inside).filter((file) => inside[file].bytesInOutput > 0);
const names = [...new Set(used.map((file) => file.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1]).filter(Boolean))].sort();

const packages = [];
const texts = new Map();
for (const name of names) {
  const folder = new URL(`node_modules/${name}/`, HERE);
  const { version, license } = JSON.parse(await readFile(new URL("package.json", folder), "utf8"));
  if (license !== "MIT") throw new Error(`${name} is under ${license}: see whether that may be vendored`);
  packages.push(`${name} ${version}`);
  const text = (await readFile(new URL("LICENSE", folder), "utf8")).trim();
  texts.set(text, [...(texts.get(text) ?? []), name]);
}
const licences = [...texts].map(([text, of]) => `${of.join(", ")}\n\n${text}\n`);
await writeFile(
  new URL("codemirror.LICENSE", VENDOR),
  `codemirror.js is built by \`make editor\` from these packages, each under the MIT licence:\n\n` +
    `${packages.map((one) => `  ${one}\n`).join("")}\n${licences.join(`\n${"-".repeat(72)}\n\n`)}`,
);
