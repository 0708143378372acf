package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tool "ggforge/cmd/internal/cli"
	"ggforge/gguf"
)

// call runs the command in this process and returns its exit code and output.
func call(args ...string) (code int, out string, err error) {
	var b bytes.Buffer
	cmd := command()
	cmd.Writer, cmd.ErrWriter = &b, &b
	err = tool.Run(context.Background(), cmd, append([]string{"ggtool"}, args...))
	return tool.Code(err), b.String(), err
}

// expect returns a function that calls a verb, checks the exit code and that the output or the error has the text,
// and returns both.
func expect(t *testing.T, verb ...string) func(code int, text string, args ...string) string {
	return func(code int, text string, args ...string) string {
		t.Helper()
		args = append(append([]string(nil), verb...), args...)
		got, out, err := call(args...)
		if err != nil {
			out += err.Error()
		}
		if got != code || !strings.Contains(out, text) {
			t.Errorf("%q: exit code %d, want %d with %q: %s", args, got, code, text, out)
		}
		return out
	}
}

// write makes a small file whose tensor holds value.
func write(t *testing.T, dir, name string, value byte) string {
	t.Helper()
	tensors := []gguf.Tensor{{Name: "t.weight", NE: []int64{32, 2}, Type: gguf.TypeQ8_0}}
	size := gguf.Layout(tensors, 32)
	m := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "long", Value: gguf.Strings(strings.Split("a b c d e f g h", " "))},
		{Key: "not-utf-8", Value: gguf.String("\xff")},
	}
	data := make([]byte, size)
	data[5] = value
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, append(gguf.AppendHeader(nil, m, tensors, 32), data...), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInspect(t *testing.T) {
	path := write(t, t.TempDir(), "x.gguf", 0)
	code, out, err := call("inspect", path)
	if code != 0 {
		t.Fatal(err)
	}
	for _, want := range []string{"GGUF version 3, little-endian, alignment 32", `"llama"`,
		"[str x 8] \"a\", \"b\", \"c\", \"d\", \"e\", \"f\", ...", "t.weight  Q8_0", "32 x 2", "8.5000 bpw"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	for args, want := range map[string]string{
		"--get general.architecture":        "llama\n",
		"--get general.architecture --json": "\"llama\"\n",
		"--get long":                        "a\nb\nc\nd\ne\nf\ng\nh\n",
		"--get not-utf-8":                   "\\xff\n",
		"--get not-utf-8 --json":            "{\n  \"hex\": \"ff\"\n}\n",
	} {
		if code, out, err := call(append([]string{"inspect", path}, strings.Fields(args)...)...); code != 0 ||
			out != want {
			t.Errorf("%s: exit code %d, %v, %q, want %q", args, code, err, out, want)
		}
	}
	if _, out, _ = call("inspect", "--tensors", "^x", path); strings.Contains(out, "t.weight") ||
		!strings.Contains(out, "tensors: 1,") {
		t.Errorf("--tensors: %s", out)
	}
	if _, out, _ = call("inspect", "--markdown", path); !strings.Contains(out,
		"| `t.weight` | Q8_0 | 32 x 2 | 68 | 8.5000 |\n") ||
		!strings.Contains(out, "| `general.architecture` | str | `\"llama\"` |\n") {
		t.Errorf("--markdown: %s", out)
	}
	if _, out, _ = call("inspect", "--full", path); !strings.Contains(out, `"h"`) {
		t.Errorf("--full shortens:\n%s", out)
	}
	for _, flags := range [][]string{{"--json"}, {"--json", "--full"}} {
		_, out, _ = call(append([]string{"inspect", path}, flags...)...)
		var d struct {
			Version  int
			Metadata []struct {
				Key       string
				Count     int
				Shortened bool
				Value     any
			}
			Tensors []struct {
				Name, Type string
				NE         []int64
			}
		}
		if err := json.Unmarshal([]byte(out), &d); err != nil {
			t.Fatal(err)
		}
		full := len(flags) == 2
		list, _ := d.Metadata[1].Value.([]any)
		if d.Version != 3 || d.Metadata[1].Count != 8 || d.Metadata[1].Shortened == full || (len(list) == 8) != full ||
			d.Tensors[0].Type != "Q8_0" || d.Tensors[0].NE[1] != 2 || !strings.Contains(out, `"hex": "ff"`) {
			t.Errorf("%v: %s", flags, out)
		}
	}
}

func TestDiff(t *testing.T) {
	dir := t.TempDir()
	a, same, b := write(t, dir, "a", 0), write(t, dir, "same", 0), write(t, dir, "b", 1)
	if code, out, err := call("diff", a, same); code != 0 || out != "" {
		t.Errorf("%d %q %v", code, out, err)
	}
	if code, out, _ := call("diff", a, b); code != 6 ||
		!strings.Contains(out, `tensor "t.weight": 1 of 68 bytes differ`) {
		t.Errorf("%d %q", code, out)
	}
}

// TestDiffNumbers compares blocks of Q8_0 whose scale is 1, so that codes are the numbers.
func TestDiffNumbers(t *testing.T) {
	dir := t.TempDir()
	q8 := func(name string, code byte) string {
		tensors := []gguf.Tensor{{Name: "a.weight", NE: []int64{32, 2}, Type: gguf.TypeQ8_0},
			{Name: "b.weight", NE: []int64{32}, Type: gguf.TypeQ8_0}}
		data := make([]byte, gguf.Layout(tensors, 32))
		data[1], data[34+1], data[34+2+7] = 0x3c, 0x3c, code // the scale is 1 in half precision
		path := filepath.Join(dir, name)
		m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")}}
		if err := os.WriteFile(path, append(gguf.AppendHeader(nil, m, tensors, 32), data...), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := q8("a", 3), q8("b", 0xfd) // -3
	code, out, err := call("diff", a, b)
	if want := `numbers of tensor "a.weight": at most 6 apart, in column 7 of row 1, 0.75 in the root of the mean square`; code != 6 || !strings.Contains(out, want) || strings.Count(out, "numbers") != 1 {
		t.Errorf("exit code %d, %v, want %s\n%s", code, err, want, out)
	}
	_, out, _ = call("diff", "--json", a, b)
	var d difference
	if err := json.Unmarshal([]byte(out), &d); err != nil || len(d.Tensors) != 1 || d.Tensors[0].Max != 6 ||
		d.Tensors[0].RMS != 0.75 || d.Tensors[0].A != "Q8_0" {
		t.Errorf("%v: %s", err, out)
	}
}

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "x.gguf", 0)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, data []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	version := append([]byte(nil), whole...)
	version[4] = 9
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{}, 2, "want a verb"},
		{[]string{"frobnicate"}, 2, `unknown verb "frobnicate"`},
		{[]string{"inspect"}, 2, "want FILE"},
		{[]string{"inspect", path, path}, 2, "surplus argument"},
		{[]string{"inspect", "--no-such-flag", path}, 2, "no-such-flag"},
		{[]string{"diff", path}, 2, "want A B"},
		{[]string{"inspect", "--get", "no.such", path}, 5, `has no key "no.such"`},
		{[]string{"inspect", "--tensors", "(", path}, 2, "--tensors"},
		{[]string{"inspect", "--json", "--markdown", path}, 2, "only one"},
		{[]string{"inspect", path + "-missing"}, 1, "x.gguf-missing"},
		{[]string{"inspect", dir}, 1, dir},
		{[]string{"inspect", file("short", whole[:len(whole)-70])}, 3, "short: tensor \"t.weight\""},
		{[]string{"inspect", file("magic", []byte("GGML0000"))}, 3, "want \"GGUF\""},
		{[]string{"inspect", file("version", version)}, 4, "GGUF version 9"},
		{[]string{"--version"}, 0, ""},
		{[]string{"inspect", "--help"}, 0, ""},
	} {
		code, out, err := call(c.args...)
		if code != c.code || err != nil && !strings.Contains(err.Error(), c.text) || err == nil && c.text != "" {
			t.Errorf("%q: exit code %d, error %v; want %d with %q\n%s", c.args, code, err, c.code, c.text, out)
		}
	}
}
