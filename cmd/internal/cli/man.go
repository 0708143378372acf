package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// roff writes the page and the pages of the verbs as one manual page, in the macros of man(7).
func (p *page) roff(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"ggforge %s\" \"ggforge\"\n", strings.ToUpper(p.name), escapeRoff(Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", escapeRoff(p.name), escapeRoff(p.title))
	p.roffSynopses(&b)
	if len(p.text) > 0 {
		b.WriteString(".SH DESCRIPTION\n")
		p.roffText(&b)
	}
	b.WriteString(".SH OPTIONS\n")
	p.roffFlags(&b)
	if len(p.below) > 0 {
		b.WriteString(".SH VERBS\n")
		p.roffVerbs(&b)
	}
	if len(p.also) > 0 {
		b.WriteString(".SH ALSO\n")
		for _, e := range p.also {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", escapeRoff(e.name), escapeRoff(e.text))
		}
	}
	if len(p.examples) > 0 {
		b.WriteString(".SH EXAMPLES\n")
		p.roffExamples(&b)
	}
	fmt.Fprintf(&b, ".SH EXIT STATUS\n%s\n", escapeRoff(strings.TrimPrefix(strings.ReplaceAll(ExitHelp, "\n", " "),
		"Exit codes: ")))
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *page) roffSynopses(b *strings.Builder) {
	for i, s := range p.synopses {
		if i > 0 {
			b.WriteString(".br\n")
		}
		fmt.Fprintln(b, escapeRoff(s))
	}
}

func (p *page) roffText(b *strings.Builder) {
	for i, text := range p.text {
		if i > 0 || !strings.HasSuffix(b.String(), ".SH DESCRIPTION\n") {
			b.WriteString(".PP\n")
		}
		for _, block := range blocks(text) {
			if strings.HasPrefix(block, " ") {
				fmt.Fprintf(b, ".nf\n%s\n.fi\n", escapeRoff(block))
			} else {
				fmt.Fprintln(b, escapeRoff(block))
			}
		}
	}
}

func (p *page) roffFlags(b *strings.Builder) {
	for _, g := range p.groups {
		if !strings.HasSuffix(b.String(), ".SH OPTIONS\n") {
			b.WriteString(".PP\n")
		}
		fmt.Fprintf(b, "%s:\n", escapeRoff(cmp.Or(g.title, "Flags")))
		for _, f := range g.entries {
			fmt.Fprintf(b, ".TP\n\\fB%s\\fR\n%s\n", escapeRoff(strings.TrimSpace(f.name)), escapeRoff(f.text))
		}
	}
}

func (p *page) roffVerbs(b *strings.Builder) {
	for _, v := range p.below {
		fmt.Fprintf(b, ".SS %s\n%s.\n.PP\n", escapeRoff(v.name), escapeRoff(v.title))
		v.roffSynopses(b)
		v.roffText(b)
		if len(v.below) > 0 {
			v.roffVerbs(b)
			continue
		}
		v.roffFlags(b)
		if len(v.examples) > 0 {
			b.WriteString(".PP\nExamples:\n")
			v.roffExamples(b)
		}
	}
}

func (p *page) roffExamples(b *strings.Builder) {
	b.WriteString(".nf\n")
	for _, line := range p.examples {
		fmt.Fprintln(b, escapeRoff("  "+line))
	}
	b.WriteString(".fi\n")
}

// escapeRoff returns text that roff prints as it is: backslashes, hyphens that are minus signs, and points and quotes
// at the beginning of a line have a meaning for roff.
func escapeRoff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
