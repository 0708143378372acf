package general

import (
	"strings"

	"ggforge/internal/text/pyjson"
)

const cardFile = "README.md"

// frontMatterLines is how many lines the file has before the YAML text.
const frontMatterLines = 1

// readCard reads the front matter of README.md:
//
//	---                  the first line, exactly
//	license: mit         ─┐
//	tags:                 │ YAML
//	- text-generation    ─┘
//	---                  or the end of the file
//
// A card without front matter is empty.
func readCard(files Files, warnf func(string, ...any)) (*document, error) {
	doc := &document{file: cardFile}
	data, err := readFile(files, cardFile)
	if err != nil {
		return nil, err
	}
	yaml, ok := frontMatter(string(data))
	if !ok {
		return doc, nil
	}
	v, lines, err := parseYAML(cardFile, yaml, frontMatterLines)
	if err != nil {
		return nil, err
	}
	o, ok := v.(*pyjson.Object)
	if !ok {
		warnf("%s: front matter: want a mapping, found %s: ignored", cardFile, describe(v))
		return doc, nil
	}
	doc.Object, doc.lines = o, lines
	return doc, nil
}

// frontMatter returns the YAML text, mended as in the reference: the language
// code no, which YAML takes for false, is quoted, and tabs become blanks.
func frontMatter(card string) (yaml string, ok bool) {
	first, rest, _ := cutLine(card)
	if first != "---" {
		return "", false
	}
	var b strings.Builder
	for more := rest != ""; more && b.Len() <= maxYAML; {
		var line string
		if line, rest, more = cutLine(rest); line == "---" {
			break
		}
		more = more && rest != ""
		b.WriteString(line + "\n")
	}
	if b.Len() == 0 {
		b.WriteString("\n")
	}
	yaml = strings.ReplaceAll(b.String(), "- no\n", "- \"no\"\n")
	return strings.ReplaceAll(yaml, "\t", "  "), true
}
