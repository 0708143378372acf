package card

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// maxText is the largest number of characters that a card shows of one metadata value.
const maxText = 300

// plain returns s as one line of at most maxText characters, without control and format characters such as
// bidirectional marks.
func plain(s string) string {
	var b strings.Builder
	blank, n := false, 0
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			blank = true
			continue
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			continue
		}
		if n == maxText {
			b.WriteString("...")
			break
		}
		if blank && n > 0 {
			b.WriteByte(' ')
		}
		blank = false
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// markdownSigns escapes the characters that have a meaning in Markdown, also in tables and mathematics, or in HTML.
var markdownSigns = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;", `\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|",
	`\|`, "~", `\~`, "$", `\$`,
	"://", "&#58;//", "www.", "www&#46;", "@", "&#64;", "!", "&#33;",
)

// lineStart matches text that begins a heading, a list or a rule at the beginning of a line.
var lineStart = regexp.MustCompile(`^([#+=-]|\d+[.)]( |$))`)

// markdown returns text that Markdown shows as s, cleaned by plain: no part of it is markup, and no address in it
// becomes a link.
func markdown(s string) string {
	s = markdownSigns.Replace(plain(s))
	if at := lineStart.FindStringIndex(s); at != nil {
		sign := strings.IndexAny(s, "#+=-.)")
		s = s[:sign] + `\` + s[sign:]
	}
	return s
}

// codeWord matches text that can be shown as code without escapes, also in a table.
var codeWord = regexp.MustCompile(`^[A-Za-z0-9._/@+=,: -]+$`)

// code returns s, cleaned by plain, formatted as code.
func code(s string) string {
	if s = plain(s); codeWord.MatchString(s) && strings.TrimSpace(s) != "" {
		return "`" + s + "`"
	}
	return markdown(s)
}

// address returns a URL that is safe in a link, "" if s is not an http or https URL.
func address(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(s) > 1<<10 ||
		plain(s) != s {
		return ""
	}
	return linkEscaper.Replace(u.String())
}

// linkEscaper percent-encodes the characters that would end an address in a Markdown link, in HTML or in a table.
var linkEscaper = strings.NewReplacer("(", "%28", ")", "%29", "<", "%3C", ">", "%3E", `"`, "%22", `\`, "%5C", "|",
	"%7C", " ", "%20", "`", "%60")

// relative returns the address of a file below the card's folder; path has slashes.
func relative(path string) string {
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		parts = append(parts, linkEscaper.Replace(url.PathEscape(part)))
	}
	return "./" + strings.Join(parts, "/")
}

// link returns a link with that text, or the text alone for an invalid address.
func link(text, to string) string {
	if to == "" {
		return markdown(text)
	}
	return "[" + markdown(text) + "](" + to + ")"
}

// hubName matches the name of a model on the hub, ORG/NAME.
var hubName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)

// HubName reports whether s is the name of a model on the hub, ORG/NAME.
func HubName(s string) bool { return hubName.MatchString(s) }

const hub = "https://huggingface.co/"

// HubModel returns ORG/NAME of the model on the hub that an address or hf://ORG/NAME[@REVISION] names, perhaps with the
// path of a file or folder of it after hf://, "" for others.
func HubModel(s string) string {
	name, ok := strings.CutPrefix(s, hub)
	if !ok {
		if name, ok = strings.CutPrefix(s, "hf://"); ok {
			name, _, _ = strings.Cut(name, "@")
			if parts := strings.SplitN(name, "/", 3); len(parts) == 3 {
				name = parts[0] + "/" + parts[1]
			}
		}
	}
	if name = strings.TrimSuffix(name, "/"); ok && hubName.MatchString(name) {
		return name
	}
	return ""
}

// cachedModel matches the folder of a revision in the cache of the hub's clients.
var cachedModel = regexp.MustCompile(`(?:^|/)models--([A-Za-z0-9._-]+?)--([A-Za-z0-9._-]+)/snapshots/([0-9a-f]{40})(?:/|$)`)

// CachedModel returns ORG/NAME and the commit of the model of the hub that a path in the cache of its clients belongs
// to, such as ~/.cache/huggingface/hub/models--ORG--NAME/snapshots/COMMIT; "" for other paths.
func CachedModel(path string) (name, commit string) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", ""
	}
	m := cachedModel.FindStringSubmatch(filepath.ToSlash(full))
	if m == nil || !hubName.MatchString(m[1]+"/"+m[2]) {
		return "", ""
	}
	return m[1] + "/" + m[2], m[3]
}
