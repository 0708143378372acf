package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	tool "ggforge/cmd/internal/cli"
)

// TestJSON decodes the JSON output, which has no fields but those of its type.
func TestJSON(t *testing.T) {
	dir := t.TempDir()
	types := tool.AboutOf(command()).Result
	for _, c := range []struct {
		args string
		code int
		typ  int
		want string // part of the JSON, without spaces
	}{
		{"--dry-run IN OUT", 0, 0,
			`"files":["OUT"],"tensors":[{"name":"output.weight","from":"lm_head.weight","ne":[256,4096],"type":"F16"},`},
		{"IN OUT", 0, 0, `"warnings":[],"seconds":`},
		{"IN OUT", 2, -1, ""},
		{"--dry-run --config-only IN", 0, 1, `"understood":true,"text":"llama,`},
		{"--dry-run --config-only IN nowhere", 2, 1,
			`"dir":"nowhere","understood":false,"text":"nowhere:nosuchdirectory","exit_code":2,`},
		{"--print-supported-models", 0, 2, `{"class":"ArceeForCausalLM","architecture":"arcee","mmproj":false},`},
	} {
		out := filepath.Join(dir, "out-f16.gguf")
		code, text, err := call(append(strings.Fields(strings.NewReplacer("IN", gollama, "OUT", out).Replace(c.args)),
			"--json", "--quiet")...)
		if code != c.code {
			t.Errorf("%s: exit code %d, %v", c.args, code, err)
		}
		if c.typ < 0 {
			continue
		}
		if want := strings.ReplaceAll(c.want, "OUT", out); !strings.Contains(strings.Join(strings.Fields(text), ""),
			want) {
			t.Errorf("%s: no %s in\n%.2000s", c.args, want, text)
		}
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.DisallowUnknownFields()
		if err := d.Decode(reflect.New(types[c.typ]).Interface()); err != nil || d.More() {
			t.Errorf("%s: %v\n%.2000s", c.args, err, text)
		}
	}
}
