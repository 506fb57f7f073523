package export

import (
	"encoding/base64"
	"html"

	"muntin/agent/session"
)

type htmlPage struct {
	out
	open bool // a section
}

const htmlTop = `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>
:root{--ground:#fff;--text:#1b1f24;--dim:#59636e;--line:#d1d9e0;--user:#0a5bc4;--tool:#7a4d00;--code:#f4f6f8}
@media (prefers-color-scheme:dark){:root{--ground:#0f1318;--text:#e4e9ee;--dim:#98a3ae;--line:#313a43;--user:#79b4ff;--tool:#e2b155;--code:#191f26}}
body{margin:0 auto;max-width:56rem;padding:1rem;background:var(--ground);color:var(--text);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.4rem;overflow-wrap:anywhere}section{border-top:1px solid var(--line);padding:.6rem 0}
h2{font-size:.9rem;margin:0;color:var(--dim)}.user h2{color:var(--user)}.tool h2{color:var(--tool)}time{font-weight:normal;float:right}
p,dd{white-space:pre-wrap;overflow-wrap:anywhere}p{margin:.4rem 0}.note{padding:.2rem 0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1rem;color:var(--dim)}dd{margin:0}
summary{cursor:pointer;font:.85rem ui-monospace,monospace;overflow-wrap:anywhere}
pre{background:var(--code);padding:.6rem;overflow:auto;font:.85rem/1.4 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
img{max-width:100%}
</style><title>`

func safe(s string) string { return html.EscapeString(clean(s)) }

func (p *htmlPage) head(title string, h session.Header) {
	p.write(htmlTop, safe(title), "</title></head><body>\n<h1>", safe(title), "</h1>\n<dl>")
	for _, row := range [][2]string{{"session", h.ID}, {"begun", h.Timestamp}, {"folder", h.Cwd}, {"from", h.ParentSession}} {
		if row[1] != "" {
			p.write("<dt>", row[0], "</dt><dd>", safe(row[1]), "</dd>")
		}
	}
	p.write("</dl>\n<main>\n")
}

func (p *htmlPage) section(kind, who, when string) {
	p.close()
	p.open = true
	p.write(`<section class="`, kind, `"><h2>`, safe(who))
	if when != "" {
		p.write(" <time>", safe(when), "</time>")
	}
	p.write("</h2>\n")
}

func (p *htmlPage) prose(text string) { p.write("<p>", safe(text), "</p>\n") }

func (p *htmlPage) code(title, text string) {
	p.write("<details><summary>", safe(title), "</summary><pre>", safe(text), "</pre></details>\n")
}

// image shows the kinds of image that run no code.
func (p *htmlPage) image(mime, data string) {
	_, err := base64.StdEncoding.DecodeString(data)
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp":
		if err == nil {
			p.write(`<img alt="" src="data:`, mime, ";base64,", data, `">`, "\n")
			return
		}
	}
	p.prose("[an image of type " + mime + " that is not shown]")
}

func (p *htmlPage) close() {
	if p.open {
		p.write("</section>\n")
	}
}

func (p *htmlPage) foot() {
	p.close()
	p.write("</main></body></html>\n")
}
