package cli

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"
)

func TestRoff(t *testing.T) {
	var b strings.Builder
	cmd := sample()
	cmd.Description = "Begins.\n.TH at the beginning of a line\n'quoted \\n\n  kept - as it is\n\n" + ExitHelp
	cmd.Metadata = About{Examples: []string{"ggsample show --type Q4_0"}}.Metadata()
	if err := pageOf(cmd, "", true).roff(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{
		".TH GGSAMPLE 1 ", "\nggsample \\- be completed\n",
		"\nBegins. .TH at the beginning of a line 'quoted \\en\n.nf\n  kept \\- as it is\n.fi\n",
		"\n.SS ggsample show\nshow: it.\n",
		"\n.TP\n\\fB\\-y, \\-\\-type TYPE\\fR\nof TYPE\n", "\n.SS ggsample store put\n",
		"\n.SH EXAMPLES\n.nf\n  ggsample show \\-\\-type Q4_0\n.fi\n", "\n.SH EXIT STATUS\n0 done, ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "secret") || strings.Contains(text, "hidden") || strings.Count(text, "Exit codes") > 0 {
		t.Errorf("too much:\n%s", text)
	}
	if got := escapeRoff(".a\n'b\nc-d\\"); got != "\\&.a\n\\&'b\nc\\-d\\e" {
		t.Errorf("%q", got)
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff, which shows the page, is not installed")
	}
	show := exec.Command(groff, "-man", "-ww", "-Tascii")
	show.Stdin = strings.NewReader(text)
	if out, err := show.CombinedOutput(); err != nil || strings.Contains(string(out), "warning:") {
		t.Errorf("groff: %v\n%s", err, out)
	}
}

// TestHelpWidth checks that texts of any content are wrapped.
func TestHelpWidth(t *testing.T) {
	long := strings.Repeat("some text that goes on ", 20)
	cmd := &cli.Command{Name: "x", Usage: long, ArgsUsage: "A " + long + ", or B",
		Description: long + "\nmore\n\n  kept", Flags: []cli.Flag{
			&cli.StringFlag{Name: "a-flag-with-a-name-that-is-too-long", Usage: long + "`VALUE`", Value: "v"},
			&cli.UintFlag{Name: "n", Value: 7, Usage: "`N`"},
		}, Commands: []*cli.Command{{Name: "verb", Usage: long}}}
	var b strings.Builder
	pageOf(cmd, "", true).write(&b)
	for line := range strings.Lines(b.String()) {
		if len(line) > HelpColumns+1 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	for _, want := range []string{"\n  x VERB [flags] A some", "\n  x VERB [flags] B\n", "goes on more\n\n  kept\n",
		"      --a-flag-with-a-name-that-is-too-long VALUE\n      ", "  -n N                      N (default: 7)\n",
		"VALUE (default: v)"} {
		if !strings.Contains(strings.ReplaceAll(b.String(), "\nmore\n", " more\n"), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}
