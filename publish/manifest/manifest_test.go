package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model/digest"
	"ggforge/writer"
)

var sum = strings.Repeat("aB", 32)

// small returns a manifest.
func small() *Manifest {
	file := digest.File{Name: "a.gguf", Bytes: 3, SHA256: sum}
	return &Manifest{
		Format: Format, Program: "p", Command: Quantize, Source: "in.gguf", Arguments: []string{"--pure"},
		Inputs: []Input{{Role: "source", File: digest.File{Name: "x/in.gguf", Bytes: 7, SHA256: sum}},
			{"base", digest.File{Name: "w", Bytes: 1}, "etag"}},
		Outputs: []Output{{"a.gguf", "Q8_0"}},
		Files: []File{{file, "Q8_0", []Tensor{{"t", "Q8_0", []int64{32, 2}, 64, 68, sum},
			{"u", "F32", []int64{1}, 160, 4, sum}}}},
	}
}

// TestRead writes and reads a manifest, and reads files that are not manifests.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.json")
	m := small()
	if err := m.Write(context.Background(), path, writer.Options{}); err != nil {
		t.Fatal(err)
	}
	lower := strings.ToLower(sum)
	m.Inputs[0].SHA256, m.Files[0].SHA256 = lower, lower
	got, err := Read(path)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("%+v, %v; want %+v", got, err, m)
	}
	if err := m.Write(context.Background(), path, writer.Options{}); !errors.Is(err, fault.Usage) {
		t.Errorf("a second one at the same place: %v", err)
	}
	for want, change := range map[string]func(m *Manifest){
		"format is":                  func(m *Manifest) { m.Format = "x" },
		"command is":                 func(m *Manifest) { m.Command = "rm" },
		"source is":                  func(m *Manifest) { m.Source = "a\x1b" },
		"arguments, want":            func(m *Manifest) { m.Arguments = make([]string, maxArguments+1) },
		"inputs[0]: name is":         func(m *Manifest) { m.Inputs[0].Name = "../x" },
		"inputs[0]: \"x/in.gguf\":":  func(m *Manifest) { m.Inputs[0].SHA256 = "" },
		"inputs[1]: \"x/in.gguf\"":   func(m *Manifest) { m.Inputs[1] = m.Inputs[0] },
		"0 outputs":                  func(m *Manifest) { m.Outputs = nil },
		"1 outputs and 0 files":      func(m *Manifest) { m.Files = nil },
		"outputs[0]: \"../a\"":       func(m *Manifest) { m.Outputs[0].Name = "../a" },
		"outputs[0]: \"\"":           func(m *Manifest) { m.Outputs[0].Name = "" },
		"files[0]: \"b/a\"":          func(m *Manifest) { m.Files[0].Name = "b/a" },
		"files[1]: \"a.gguf\"":       func(m *Manifest) { m.Files = append(m.Files, m.Files[0]) },
		"files[0]: \"a.gguf\": byte": func(m *Manifest) { m.Files[0].Bytes = -1 },
	} {
		m := small()
		change(m)
		data, err := m.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("m", data); err == nil || !strings.Contains(err.Error(), want) ||
			!errors.Is(err, fault.Broken) && !errors.Is(err, fault.Unsupported) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, text := range []string{"", "{", `{"format": "` + Format + `", "files": 3}`} {
		if _, err := Parse("m", []byte(text)); !errors.Is(err, fault.Broken) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestDiff changes one property of a file after the other.
func TestDiff(t *testing.T) {
	want := small().Files[0]
	if d := want.Diff(&small().Files[0]); d != nil {
		t.Errorf("the same file: %+v", d)
	}
	for _, c := range []struct {
		tensor, text string
		change       func(f *File)
	}{
		{"u", "is missing", func(f *File) { f.Tensors = f.Tensors[:1] }},
		{"t", "x is in its place", func(f *File) { f.Tensors[0].Name = "x" }},
		{"t", "is Q4_0 of", func(f *File) { f.Tensors[0].Type = "Q4_0" }},
		{"u", "of [2], want F32 of [1]", func(f *File) { f.Tensors[1].Shape = []int64{2} }},
		{"u", "SHA-256 is x", func(f *File) { f.Tensors[1].SHA256 = "x"; f.SHA256 = "y" }},
		{"v", "is not in the manifest", func(f *File) { f.Tensors = append(f.Tensors, Tensor{Name: "v"}) }},
		{"", "4 bytes, want 3", func(f *File) { f.Bytes = 4 }},
		{"", "metadata or layout differ: SHA-256 is x", func(f *File) { f.SHA256 = "x" }},
	} {
		got := small().Files[0]
		c.change(&got)
		if d := want.Diff(&got); d == nil || d.Tensor != c.tensor || !strings.Contains(d.Text, c.text) ||
			d.File != "a.gguf" {
			t.Errorf("%+v, want %q: %s", d, c.tensor, c.text)
		}
	}
}

// TestChanged changes inputs.
func TestChanged(t *testing.T) {
	m := small()
	if lines := m.Changed(small().Inputs); len(lines) > 0 {
		t.Errorf("the same inputs: %q", lines)
	}
	for want, change := range map[string]func(in []Input) []Input{
		"x/in.gguf (source): is not read":         func(in []Input) []Input { return in[1:] },
		"x/in.gguf (source): has 8 bytes, want 7": func(in []Input) []Input { in[0].Bytes = 8; return in },
		"x/in.gguf (source): SHA-256 is x":        func(in []Input) []Input { in[0].SHA256 = "x"; return in },
		"w (base): the server calls it new":       func(in []Input) []Input { in[1].State = "new"; return in },
		"y (imatrix): was not read for the manifest": func(in []Input) []Input {
			return append(in,
				Input{Role: "imatrix", File: digest.File{Name: "y"}})
		},
	} {
		if lines := m.Changed(change(small().Inputs)); len(lines) != 1 || !strings.HasPrefix(lines[0], want) {
			t.Errorf("%q, want %q", lines, want)
		}
	}
}

// TestDescribe describes inputs that are named twice, one of them on a server, and a file without tensor data.
func TestDescribe(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "v.gguf")
	tensors := []gguf.Tensor{{Name: "t", NE: []int64{4}, Type: gguf.TypeF32}}
	header := gguf.AppendHeader(nil, nil, tensors, 32)
	if err := os.WriteFile(file, header, 0o666); err != nil { // the tensor's data are missing
		t.Fatal(err)
	}
	list := []digest.Input{{Role: "source", Name: "n", Path: file}, {Role: "base", Name: "m", Bytes: 9, State: "s"},
		{Role: "source", Name: "n", Path: file}}
	in, files, err := Describe(context.Background(), list, []Made{{Output{"v", "F32"}, []string{file}}}, 2)
	if err != nil || len(in) != 2 || in[0].State != "s" || in[0].Bytes != 9 || in[1].Name != "n" || in[1].SHA256 == "" {
		t.Errorf("%+v, %v", in, err)
	}
	if len(files) != 1 || files[0].Bytes != int64(len(header)) || len(files[0].Tensors) != 0 ||
		files[0].SHA256 != in[1].SHA256 || files[0].Type != "F32" {
		t.Errorf("%+v", files)
	}
	if _, _, err := Describe(context.Background(), append(list, digest.Input{Role: "base", Name: "m", Path: file}), nil,
		2); !errors.Is(err, fault.Usage) {
		t.Errorf("two inputs of one name: %v", err)
	}
}

// TestSchema checks that the schema in docs is that of manifests, and that every field has a description.
func TestSchema(t *testing.T) {
	want, err := os.ReadFile("../../docs/manifest.schema.json")
	if err != nil || !bytes.Equal(want, Schema()) {
		t.Errorf("docs/manifest.schema.json: %v; write it with: ggtool reproduce --schema", err)
	}
	if bytes.Contains(want, []byte(`"description": ""`)) {
		t.Error("a field without a description")
	}
}

func FuzzParse(f *testing.F) {
	data, err := json.Marshal(small())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"format": "` + Format + `"}`))
	f.Add(bytes.Replace(data, []byte(`"tensors"`), []byte(`"x"`), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse("m", data)
		if err != nil {
			return
		}
		again, err := m.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := Parse("m", again); err != nil || len(same.Files) != len(m.Files) ||
			len(m.Changed(same.Inputs)) > 0 {
			t.Errorf("%v: %s", err, again)
		}
		for i := range m.Files {
			if !plain(m.Files[i].Name) || m.Files[i].Diff(&m.Files[i]) != nil {
				t.Errorf("%+v", m.Files[i])
			}
		}
	})
}
