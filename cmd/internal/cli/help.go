package cli

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/urfave/cli/v3"
)

// Categories of flags that many commands have.
const (
	CategoryOutput     = "Output"
	CategoryCheckpoint = "Checkpoint"
	CategoryRun        = "Run"
)

// page is the content of a command's help and manual.
type page struct {
	name     string   // with the names of the commands above
	title    string   // what it does
	synopses []string // command lines
	text     []string // paragraphs; lines that begin with a space stay as they are
	verbs    []group
	also     []entry // verbs that every command has
	groups   []group // of flags
	left     int     // flags that are left out: --help-all has them
	examples []string
	below    []*page // the pages of the verbs
}

// group is flags, or verbs, under a heading.
type group struct {
	title   string
	entries []entry
}

// entry is a flag or a verb and what it does.
type entry struct{ name, text string }

// pageOf returns the page of a command; above is the name of the command above it, "" for none. Flags that Run adds
// to every command are in group CategoryRun. all includes flags that few people need.
func pageOf(cmd *cli.Command, above string, all bool) *page {
	p := &page{name: strings.TrimSpace(above + " " + cmd.Name), title: cmd.Usage, examples: AboutOf(cmd).Examples}
	flags := " [flags]"
	if len(cmd.Commands) > 0 {
		flags = " VERB [flags]"
	}
	for _, args := range strings.Split(cmd.ArgsUsage, ", or ") {
		p.synopses = append(p.synopses, strings.TrimSpace(p.name+flags+" "+args))
	}
	about, _ := strings.CutSuffix(strings.TrimSpace(cmd.Description), ExitHelp)
	if more := AboutOf(cmd).More; all && more != "" {
		about = strings.TrimSpace(about) + "\n\n" + more
	}
	for _, text := range strings.Split(about, "\n\n") {
		if text = strings.Trim(text, "\n"); text != "" {
			p.text = append(p.text, text)
		}
	}
	for _, sub := range cmd.Commands {
		if sub.Hidden {
			continue
		}
		p.below = append(p.below, pageOf(sub, p.name, all))
		p.verbs = add(p.verbs, sub.Category, entry{sub.Name, sub.Usage})
	}
	p.group(cmd, all)
	if above == "" {
		p.groups = add(p.groups, CategoryRun, entry{"    --version", "print the version and the kernels in use"})
		for _, s := range services(cmd) {
			if !s.Hidden {
				p.also = append(p.also, entry{strings.TrimSpace(p.name + " " + s.Name + " " + s.ArgsUsage), s.Usage})
			}
		}
	}
	return p
}

// group sorts flags into groups, in the order of the definition; flags that many commands have are last.
func (p *page) group(cmd *cli.Command, all bool) {
	main := AboutOf(cmd).Main
	for _, f := range cmd.Flags {
		name := f.Names()[0]
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() ||
			slices.Contains([]string{"help", "version", "quiet"}, name) {
			continue
		}
		category := ""
		if c, ok := f.(cli.CategorizableFlag); ok {
			category = c.GetCategory()
		}
		e := flagEntry(f)
		if all || main == nil {
			e.text += alsoCalled(f)
		} else if !slices.Contains(main, name) {
			p.left++
			continue
		}
		p.groups = add(p.groups, category, e)
	}
	slices.SortStableFunc(p.groups, func(a, b group) int { return rank(a.title) - rank(b.title) })
	p.groups = add(p.groups, CategoryRun, flagEntry(quietFlag().build()), entry{"-h, --help", "show this help"})
	if main != nil {
		p.groups = add(p.groups, CategoryRun, entry{"    --" + helpAll, "show all flags"})
	}
}

func rank(title string) int {
	return slices.Index([]string{CategoryOutput, CategoryCheckpoint, CategoryRun}, title)
}

// add adds entries to the group of that title.
func add(groups []group, title string, entries ...entry) []group {
	i := slices.IndexFunc(groups, func(g group) bool { return g.title == title })
	if i < 0 {
		i = len(groups)
		groups = append(groups, group{title: title})
	}
	groups[i].entries = append(groups[i].entries, entries...)
	return groups
}

// Verbs lists verbs under a heading of the help.
func Verbs(category string, verbs ...*cli.Command) []*cli.Command {
	for _, v := range verbs {
		v.Category = category
	}
	return verbs
}

// placeholder matches the name of the value in a help text.
var placeholder = regexp.MustCompile("`([^`]*)`")

// valueName returns the name of the value of a flag in the help, "" for a flag without a value.
func valueName(f cli.Flag) string {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok || !d.TakesValue() {
		return ""
	}
	if m := placeholder.FindStringSubmatch(d.GetUsage()); m != nil {
		return m[1]
	}
	return "VALUE"
}

// helpAll is the flag that shows all flags. Run handles it.
const helpAll = "help-all"

// alsoCalled lists the longer aliases of a flag, "" for none.
func alsoCalled(f cli.Flag) string {
	var names []string
	for _, name := range f.Names()[1:] {
		if len(name) > 1 {
			names = append(names, "--"+name)
		}
	}
	if names == nil {
		return ""
	}
	return " (also " + strings.Join(names, ", ") + ")"
}

// flagEntry returns a flag as the help lists it: -c, --ctx-size N.
func flagEntry(f cli.Flag) entry {
	var short, long []string
	for _, name := range f.Names() {
		switch {
		case len(name) == 1:
			short = append(short, "-"+name)
		case long == nil:
			long = append(long, "--"+name)
		}
	}
	e := entry{name: strings.Join(append(short, long...), ", ")}
	if short == nil {
		e.name = "    " + e.name
	}
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return e
	}
	if value := valueName(f); value != "" {
		e.name += " " + value
	}
	e.text = placeholder.ReplaceAllString(d.GetUsage(), "$1")
	value := strings.Trim(cmp.Or(d.GetDefaultText(), d.GetValue()), `"`)
	if d.TakesValue() && !slices.Contains([]string{"", "0", "[]"}, value) && !strings.Contains(e.text, "default") {
		e.text += " (default: " + value + ")"
	}
	return e
}

// HelpColumns is the width of help texts, for a terminal of 80 columns.
const HelpColumns = 79

// Wrap returns text in lines of at most columns columns, broken at spaces.
func Wrap(text string, columns int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && uniseg.StringWidth(line)+1+uniseg.StringWidth(word) > columns {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// blocks returns the parts of a paragraph: text that may be broken anywhere, as one line, and
// lines that stay as they are, which begin with a space.
func blocks(paragraph string) (list []string) {
	for line := range strings.SplitSeq(paragraph, "\n") {
		if n := len(list) - 1; n >= 0 && !strings.HasPrefix(line, " ") && !strings.HasPrefix(list[n], " ") {
			list[n] += " " + line
			continue
		}
		list = append(list, line)
	}
	return list
}

// write prints the page as the help of a command.
func (p *page) write(w io.Writer) {
	var b strings.Builder
	for i, line := range Wrap(p.name+" - "+p.title, HelpColumns-2) {
		if i > 0 {
			b.WriteString("  ")
		}
		fmt.Fprintln(&b, line)
	}
	b.WriteString("\nUsage:\n")
	for _, s := range p.synopses {
		for i, line := range Wrap(s, HelpColumns-6) {
			fmt.Fprintf(&b, "  %s%s\n", strings.Repeat(" ", 4*min(i, 1)), line)
		}
	}
	for _, text := range p.text {
		b.WriteString("\n")
		for _, block := range blocks(text) {
			lines := []string{block}
			if !strings.HasPrefix(block, " ") {
				lines = Wrap(block, HelpColumns)
			}
			fmt.Fprintln(&b, strings.Join(lines, "\n"))
		}
	}
	if len(p.verbs) > 0 {
		wide := 0
		for _, g := range p.verbs {
			for _, v := range g.entries {
				wide = max(wide, len(v.name))
			}
		}
		for _, g := range p.verbs {
			fmt.Fprintf(&b, "\n%s:\n", cmp.Or(g.title, "Verbs"))
			list(&b, g.entries, wide+4)
		}
		fmt.Fprintf(&b, "\n'%s VERB --help' describes a verb.\n", p.name)
	}
	for _, g := range p.groups {
		fmt.Fprintf(&b, "\n%s:\n", cmp.Or(g.title, "Flags"))
		list(&b, g.entries, flagColumn)
	}
	if p.left > 0 {
		fmt.Fprintf(&b, "\n'%s --%s' lists %d more.\n", p.name, helpAll, p.left)
	}
	if len(p.examples) > 0 {
		b.WriteString("\nExamples:\n")
		for _, line := range p.examples {
			fmt.Fprintln(&b, "  "+line)
		}
	}
	if len(p.also) > 0 {
		b.WriteString("\nAlso:\n")
		list(&b, p.also, flagColumn)
	}
	fmt.Fprintf(&b, "\n%s\n", ExitHelp)
	io.WriteString(w, b.String())
}

// flagColumn is the column where the texts of flags begin.
const flagColumn = 28

// list prints entries: names, and texts that begin at a column, on the next line if a name is too long.
func list(b *strings.Builder, entries []entry, column int) {
	for _, e := range entries {
		name := "  " + e.name
		lines := Wrap(e.text, HelpColumns-column)
		if len(name)+2 > column {
			fmt.Fprintln(b, name)
			name = ""
		}
		for _, line := range lines {
			fmt.Fprintf(b, "%-*s%s\n", column, name, line)
			name = ""
		}
		if name != "" {
			fmt.Fprintln(b, name)
		}
	}
}

// printHelp replaces the help of urfave/cli.
func printHelp(w io.Writer, _ string, data any) {
	if cmd, ok := data.(*cli.Command); ok {
		name := cmd.FullName()
		r, _ := cmd.Root().Metadata[runKey].(*run)
		pageOf(cmd, strings.TrimSpace(strings.TrimSuffix(name, cmd.Name)), r != nil && r.helpAll).write(w)
	}
}

func init() { cli.HelpPrinter = printHelp }
