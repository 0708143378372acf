package cli

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"
)

// sample is a command with verbs, flags and values to complete.
func sample() *cli.Command {
	none := func(context.Context, *cli.Command) error { return nil }
	types := Names("Q4_0", "Q4_K_M", "IQ4_XS")
	return &cli.Command{Name: "ggsample", Usage: "be completed", Action: NeedsVerb, Commands: []*cli.Command{
		{Name: "show", Usage: "show: it", Action: none, Flags: Flags(
			Flag{Name: "type", Aliases: []string{"y"}, Value: Text, Choices: types, Usage: "of `TYPE`"},
			ProgressFlag(), ForceFlag(),
			Flag{Name: "out", Value: File, Usage: "to `FILE`"}, Flag{Name: "secret", Hidden: true},
			Flag{Name: "like", Value: TextList, Choices: types, Usage: "as `TYPE`"},
		)},
		{Name: "make", Usage: "make it", Action: none, Metadata: About{Values: func(before int) []string {
			if before == 0 {
				return nil
			}
			return types()
		}}.Metadata()},
		{Name: "store", Usage: "has verbs", Action: NeedsVerb, Commands: []*cli.Command{{Name: "put", Action: none},
			{Name: "pull", Action: none}}},
		{Name: "hidden", Hidden: true, Action: none},
	}}
}

// completed has words after the command's name, the last at the cursor, and the expected completions.
var completed = []struct{ words, want string }{
	{"", "show make store completion man"},
	{"s", "show store"},
	{"x", ""},
	{"h", ""},
	{"store p", "put pull"},
	{"store x p", "put pull"},
	{"show --f", "--force"},
	{"show --s", ""},
	{"show --q", "--quiet"},
	{"--q", "--quiet"},
	{"show -y", "-y"},
	{"show --type ", "Q4_0 Q4_K_M IQ4_XS"},
	{"show -y Q4", "Q4_0 Q4_K_M"},
	{"show --type iq", "iq4_xs"},
	{"show --like q4_k", "q4_k_m"},
	{"show --type=Q4_K", "--type=Q4_K_M"},
	{"show --type = Q4_K", "Q4_K_M"},
	{"show --type =", "Q4_0 Q4_K_M IQ4_XS"},
	{"show --progress b", "bar"},
	{"show --out ", ""},
	{"show --none=", ""},
	{"show --type Q4_0 --fo", "--force"},
	{"show -- --fo", ""},
	{"make ", ""},
	{"make in Q", "Q4_0 Q4_K_M"},
	{"completion z", "zsh"},
}

func TestComplete(t *testing.T) {
	for _, c := range completed {
		var b bytes.Buffer
		cmd := sample()
		cmd.Writer, cmd.ErrWriter = &b, &b
		words := strings.Split(c.words, " ")
		words[len(words)-1] = "." + words[len(words)-1]
		if err := Run(context.Background(), cmd, append([]string{"ggsample", completeVerb}, words...)); err != nil {
			t.Errorf("%q: %v", c.words, err)
		}
		var got []string
		for line := range strings.Lines(b.String()) {
			word, _, _ := strings.Cut(line, "\t")
			got = append(got, word)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
}

func FuzzComplete(f *testing.F) {
	for _, c := range completed {
		f.Add(c.words)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Split(text, " ")
		last := words[len(words)-1]
		for _, e := range complete(sample(), words) {
			begin := last[strings.LastIndexByte(last, '=')+1:]
			if !strings.HasPrefix(strings.ToLower(e.name[strings.LastIndexByte(e.name, '=')+1:]),
				strings.ToLower(strings.TrimPrefix(begin, "."))) || strings.ContainsAny(e.name+e.text, "\n\t") {
				t.Fatalf("%q: %q", words, e)
			}
		}
	})
}

// TestCompletionChild runs the command, in processes started by TestShells.
func TestCompletionChild(t *testing.T) {
	if os.Getenv("GGFORGE_COMPLETE") == "" {
		t.Skip("not a process of TestShells")
	}
	err := Run(context.Background(), sample(), append([]string{"ggsample"}, flag.Args()...))
	os.Exit(Code(err))
}

// shellTests have, for each shell, a script that loads the completions and completes a line, given as words. ggsample
// is a function that runs this test's binary.
var shellTests = []struct {
	shell, test string
	args        []string
}{
	{"bash", `source "$1"; shift; COMP_WORDS=(ggsample "$@"); COMP_CWORD=$#; _ggsample; printf '%s\n' "${COMPREPLY[@]}"; [[ $(complete -p ggsample) == *"-F _ggsample ggsample" ]] || echo unregistered`, []string{"--norc", "--noprofile", "-c"}},
	{"zsh", `compdef() { registered=$2; }; _files() { :; }; _describe() { for x in "${(@P)2}"; do print -r -- "${${x%%:*}//\\:/:}"; done; }
		source "$1"; shift; words=(ggsample "$@"); CURRENT=$#words; _ggsample; [[ $registered == ggsample ]] || echo unregistered`, []string{"-f", "-c"}},
	{"fish", `source $argv[1]; complete -C "ggsample "(string join ' ' -- $argv[2..-1]) | string replace -r '\t.*' ''; true`, []string{"--no-config", "-c"}},
}

// TestShells completes lines in the shells that are installed.
func TestShells(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the command is a script of a Unix shell")
	}
	dir := t.TempDir()
	command := "#!/bin/sh\nGGFORGE_COMPLETE=1 exec '" + os.Args[0] + "' -test.run='^TestCompletionChild$' -- \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "ggsample"), []byte(command), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, s := range shellTests {
		t.Run(s.shell, func(t *testing.T) {
			exe, err := exec.LookPath(s.shell)
			if err != nil {
				t.Skip("not installed")
			}
			var b bytes.Buffer
			cmd := sample()
			cmd.Writer, cmd.ErrWriter = &b, &b
			if err := Run(context.Background(), cmd, []string{"ggsample", "completion", s.shell}); err != nil {
				t.Fatal(err)
			}
			script := filepath.Join(dir, s.shell)
			if err := os.WriteFile(script, b.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
			for line, want := range map[string]string{
				"s": "show store", "": "show make store completion man", "show --f": "--force",
				"show --type Q4": "Q4_0 Q4_K_M", "store p": "pull put", "make in iq": "iq4_xs",
			} {
				args := append(slices.Clone(s.args), s.test)
				if s.shell != "fish" {
					args = append(args, s.shell)
				}
				cmd := exec.Command(exe, append(append(args, script), strings.Split(line, " ")...)...)
				cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+dir)
				out, err := cmd.CombinedOutput()
				got, wanted := strings.Fields(string(out)), strings.Fields(want)
				slices.Sort(got)
				slices.Sort(wanted)
				if err != nil || !slices.Equal(got, wanted) {
					t.Errorf("%q: %v, %q, want %q", line, err, out, want)
				}
			}
		})
	}
	for _, args := range [][]string{{"completion", "powershell"}, {"completion", "tcsh"}, {"completion"},
		{"man", "x"}} {
		cmd := sample()
		var b bytes.Buffer
		cmd.Writer, cmd.ErrWriter = &b, &b
		err := Run(context.Background(), cmd, append([]string{"ggsample"}, args...))
		if ok := args[len(args)-1] == "powershell"; ok != (err == nil) ||
			ok && !strings.Contains(b.String(), "-CommandName ggsample") || !ok && Code(err) != 2 {
			t.Errorf("%q: %v\n%s", args, err, b.String())
		}
	}
}
