package general

import (
	"strings"
)

const cardFile = "README.md"

// frontMatterLines is how many lines stand before the YAML text in the file.
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
	v, err := parseYAML(cardFile, yaml, frontMatterLines)
	if err != nil {
		return nil, err
	}
	o, ok := v.(*object)
	if !ok {
		warnf("%s: front matter: want a mapping, found %s: ignored", cardFile, describe(v))
		return doc, nil
	}
	doc.object = *o
	return doc, nil
}

// frontMatter returns the YAML text, mended as in the reference: the language
// code no, which YAML takes for false, is quoted, and tabs become blanks.
func frontMatter(card string) (yaml string, ok bool) {
	all := lines(card)
	if len(all) == 0 || all[0] != "---" {
		return "", false
	}
	var b strings.Builder
	for _, line := range all[1:] {
		if line == "---" {
			break
		}
		b.WriteString(line + "\n")
	}
	if b.Len() == 0 {
		b.WriteString("\n")
	}
	yaml = strings.ReplaceAll(b.String(), "- no\n", "- \"no\"\n")
	return strings.ReplaceAll(yaml, "\t", "  "), true
}
