#!/usr/bin/env bash
# Looks at the demo's report in headless Chromium, at two widths and in both themes:
#   bash tests/report/screenshots.sh ADASUM_RUN WORK_DIR
# Leaves WORK_DIR/report_{1280,400}_{light,dark}.png. Ends with 77 where there is no Chromium, and with 1 if a text is too
# small, too pale, overlaps another or leaves its picture, or the page is wider than the window.
set -euo pipefail
program=$1
work=$2
here=$(cd "$(dirname "$0")" && pwd)
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [[ -z $chromium ]]; then
    echo "no Chromium here"
    exit 77
fi

"$program" demo --epochs 5 --json --report "$work/report" > /dev/null
# The page itself has no script; a copy of it gets the one that measures, and stands in a frame of the width wanted: a window
# without a head is never narrower than 500 pixels.
framed() {
    python3 - "$work/report/index.html" "$here/measure.js" "$1" > "$work/framed.html" <<'PYTHON'
import html, sys
page, script, width = open(sys.argv[1]).read(), open(sys.argv[2]).read(), sys.argv[3]
assert page.count("</body>") == 1
inner = page.replace("</body>", f"<script>{script}</script></body>")
print('<!DOCTYPE html><html style="color-scheme: light dark"><body>'
      f'<iframe style="border:0;height:2900px;width:{width}px" srcdoc="{html.escape(inner)}"></iframe></body></html>')
PYTHON
}

# A browser that a signal ends says nothing about the page: it is asked once more.
look() {
    local try code
    for try in first second; do
        code=0
        # 0 is dark, 1 is light. /dev/shm may be small in a container.
        "$chromium" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --user-data-dir="$work/chromium" \
            --window-size="$1,$2" --blink-settings=preferredColorScheme="$3" "${@:4}" 2> "$work/chromium.log" || code=$?
        [ "$code" -ge 128 ] || return "$code"
        echo "$try try: Chromium was ended by signal $((code - 128))" >&2
    done
    return "$code"
}

for width in 1280 400; do
    height=$((width == 1280 ? 1800 : 2900))
    for theme in light dark; do
        setting=$([[ $theme == light ]] && echo 1 || echo 0)
        picture=$work/report_${width}_$theme.png
        look "$width" "$height" "$setting" --screenshot="$picture" "file://$work/report/index.html"
        framed "$width"
        look 1500 "$height" "$setting" --dump-dom "file://$work/framed.html" > "$work/dom.html"
        python3 - "$work/dom.html" "$picture" "$width" "$theme" <<'PYTHON'
import html, json, re, struct, sys
dom, picture, width, theme = sys.argv[1:]
found = re.search(r'<pre id="measured">(.*?)</pre>', open(dom).read(), re.S)
assert found, "nothing was measured: did the script run?"
seen = json.loads(html.unescape(found.group(1)))
size = struct.unpack(">II", open(picture, "rb").read(24)[16:])
print(f"{width} pixels, {theme}: {seen['pictures']} pictures, {seen['texts']} texts, faults: {seen['faults'] or 'none'}")
assert seen["width"] == int(width) == size[0], f"window of {seen['width']}, picture of {size[0]} pixels"
assert seen["pictures"] == 6 and seen["texts"] > 40, "pictures are missing"
assert seen["dark"] == (theme == "dark"), "the theme is not that of the reader"
assert not seen["faults"]
PYTHON
    done
done
