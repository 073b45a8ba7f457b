#!/bin/sh
# Makes regl-scatterplot-<version>.min.js, with all that it needs, and its licences: needs node and npm.
# What comes out is committed; the sum of the script stands in README.md, and a test compares them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/package.json" "$here/package-lock.json" "$work"
cd "$work"
npm ci --silent --ignore-scripts
version=$(node -p 'require("regl-scatterplot/package.json").version')
echo 'export { default, createRenderer } from "regl-scatterplot";' > entry.js
npx esbuild entry.js --bundle --minify --format=esm --target=es2022 --legal-comments=eof \
  --outfile="$here/regl-scatterplot-$version.min.js"
for package in regl-scatterplot @flekschas/utils camera-2d-simple dom-2d-camera earcut gl-matrix pub-sub-es regl regl-line; do
  node -p "const p = require('./node_modules/$package/package.json'); \`=== \${p.name} \${p.version} (\${p.license})\`"
  cat node_modules/$package/LICENSE* 2> /dev/null || echo "(The package holds no text of its licence.)"
  echo
done > "$here/LICENSES.txt"
cd "$here"
sha256sum "regl-scatterplot-$version.min.js"
