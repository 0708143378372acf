package main

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tool "ggforge/cmd/internal/cli"
	"ggforge/gguf"
	"ggforge/test/clitest"
)

// changed writes a copy of a file with changed metadata and data, and returns its path.
func changed(t *testing.T, path string, metadata func(m *gguf.Metadata), data func(f *gguf.File, data []byte)) string {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if data != nil {
		data(f, whole[f.DataStart:])
	}
	m := slices.Clone(f.Metadata)
	if metadata != nil {
		metadata(&m)
	}
	out := filepath.Join(t.TempDir(), "changed.gguf")
	if err := os.WriteFile(out, append(gguf.AppendHeader(nil, m, f.Tensors, f.Alignment), whole[f.DataStart:]...),
		0o666); err != nil {
		t.Fatal(err)
	}
	return out
}

// setToken replaces the text of a token.
func setToken(id int, text string) func(m *gguf.Metadata) {
	return func(m *gguf.Metadata) {
		v, _ := m.Get("tokenizer.ggml.tokens")
		var list []string
		for e := range v.Elems() {
			s, _ := e.Str()
			list = append(list, s)
		}
		list[id] = text
		m.Set("tokenizer.ggml.tokens", gguf.Strings(list))
	}
}

// TestBadInput checks the exit codes and messages of models and texts that are refused.
func TestBadInput(t *testing.T) {
	dir := checkpointOf(t, "llama", 1)
	files := quantized(t, dir, "F16", "Q8_0")
	file, other := files[0], files[1]
	without := func(keys ...string) string {
		return changed(t, file, func(m *gguf.Metadata) {
			for _, k := range keys {
				m.Delete(k)
			}
		}, nil)
	}
	set := func(key string, v gguf.Value) string {
		return changed(t, file, func(m *gguf.Metadata) { m.Set(key, v) }, nil)
	}
	nan := changed(t, file, nil, func(f *gguf.File, data []byte) {
		x := f.Tensor("blk.1.ffn_norm.weight")
		binary.LittleEndian.PutUint32(data[x.Offset:], math.Float32bits(float32(math.NaN())))
	})
	text, short, umlauts := textOf(t, source(t, 900)), textOf(t, "package x"), textOf(t, strings.Repeat("é\xff ", 40))
	cut := filepath.Join(t.TempDir(), "cut.gguf")
	if whole, err := os.ReadFile(file); err != nil || os.WriteFile(cut, whole[:len(whole)/2], 0o666) != nil {
		t.Fatal(err)
	}
	noWeights := t.TempDir()
	if err := os.CopyFS(noWeights, os.DirFS(gollama)); err != nil ||
		os.Remove(filepath.Join(noWeights, "model.safetensors")) != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"a text that is too short", []string{"perplexity", file, "-f", short}, 5,
			"the text has 6 tokens, want at least 32, a chunk"},
		{"with stride", []string{"perplexity", file, "-f", short, "--stride", "8"}, 5, "want more than 256, a chunk"},
		{"an empty one", []string{"perplexity", file, "-f", textOf(t, "")}, 5, "the text has 1 tokens"},
		{"no tokenizer", []string{"perplexity", without("tokenizer.ggml.model"), "-f", text}, 4,
			"tokenizer.ggml.model"},
		{"no tokens", []string{"perplexity", without("tokenizer.ggml.tokens"), "-f", text}, 3, "tokenizer.ggml.tokens"},
		{"an unknown tokenizer", []string{"perplexity", set("tokenizer.ggml.model", gguf.String("new")), "-f", text}, 4,
			`"new"`},
		{"an unknown architecture", []string{"perplexity", set("general.architecture", gguf.String("new")), "-f", text},
			4, `architecture "new" is not supported`},
		{"an unknown key", []string{"perplexity", set("llama.new_feature", gguf.Bool(true)), "-f", text}, 4,
			"llama.new_feature"},
		{"a byte without a token", []string{"perplexity", changed(t, file, setToken(3+0xff, "x0"), nil), "-f", umlauts},
			3, "no token for byte 0xFF"},
		{"NaN", []string{"perplexity", nan, "-f", text}, 3, "changed.gguf: layer 1"},
		{"a file that is cut", []string{"perplexity", cut, "-f", text}, 3, "cut.gguf"},
		{"no weights", []string{"perplexity", noWeights, "-f", text}, 3, "safetensors"},
		{"no such model", []string{"perplexity", filepath.Join(dir, "none"), "-f", text}, 1, "none"},
		{"a base with other tokens", []string{"compare", gollama, file, "-f", text}, 5,
			"and ../../test/testdata/gollama 4096"},
		{"a token that is another", []string{"compare", file, changed(t, other, setToken(7, "x7"), nil), "-f", text}, 5,
			`token 7 is "x7" in`},
		{"NaN in a model", []string{"compare", file, nan, "-f", text}, 3, "changed.gguf: layer 1"},
		{"a model without tokenizer", []string{"compare", file, without("tokenizer.ggml.model"), "-f", text}, 4,
			"tokenizer.ggml.model"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, _, err := call(append(c.args, "-c", "32", "--chunks", "1", "--progress", "none")...)
			if code != c.code || err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
				t.Errorf("exit code %d, %v, printed %q, want %d with %q", code, err, out, c.code, c.want)
			}
		})
	}
}

// TestWarnings checks warnings about texts and models that are accepted.
func TestWarnings(t *testing.T) {
	files := quantized(t, checkpointOf(t, "llama", 1), "F16", "Q8_0")
	file, other := files[0], files[1]
	unigram := changed(t, file, func(m *gguf.Metadata) { m.Set("tokenizer.ggml.model", gguf.String("t5")) }, nil)
	short := changed(t, file, func(m *gguf.Metadata) { m.Set("llama.context_length", gguf.Uint32(31)) }, nil)
	spaces := changed(t, other, func(m *gguf.Metadata) { m.Set("tokenizer.ggml.add_space_prefix", gguf.Bool(false)) },
		nil)
	text, bytes := textOf(t, source(t, 900)), textOf(t, strings.Repeat("a\xffé ", 40))
	for _, c := range []struct {
		name string
		args []string
		want []string // one element for each warning
	}{
		{"nothing", []string{"perplexity", file, "-f", text}, nil},
		{"bytes", []string{"perplexity", file, "-f", bytes},
			[]string{"40 bytes are not UTF-8, the first one at offset 1"}},
		{"unknown characters", []string{"perplexity", unigram, "-f", bytes},
			[]string{"not UTF-8", "of 32 tokens are the unknown token"}},
		{"a long chunk", []string{"perplexity", short, "-f", text},
			[]string{"was trained with 31 tokens at most, and chunks have 32"}},
		{"in a comparison", []string{"compare", file, short, "-f", text},
			[]string{"was trained with 31 tokens at most, and chunks have 32"}},
		{"another tokenizer", []string{"compare", file, spaces, "-f", text},
			[]string{"takes the text for other tokens than"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, log, err := call(append(c.args, "-c", "32", "--chunks", "1", "--progress", "none")...)
			if code != 0 || out == "" || strings.Count(log, "warning: ") != len(c.want) {
				t.Fatalf("exit code %d, %v: %s", code, err, log)
			}
			for _, want := range c.want {
				if !strings.Contains(log, want) {
					t.Errorf("%q is not in %s", want, log)
				}
			}
		})
	}
}

// TestChanged changes a model while it runs.
func TestChanged(t *testing.T) {
	text := textOf(t, source(t, 1500))
	touch := func(path string) error {
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		return os.Chtimes(path, st.ModTime(), st.ModTime().Add(time.Microsecond)) // NTFS has steps of 100 ns
	}
	shorten := func(path string) error { return os.Truncate(path, 64) }
	base := checkpointOf(t, "llama", 1)
	for name, c := range map[string]struct {
		change     func(path string) error
		checkpoint bool
	}{
		"touched": {touch, false}, "shorter": {shorten, false}, "removed": {os.Remove, false},
		"weights shorter": {shorten, true}, "weights touched": {touch, true},
	} {
		for _, verb := range []string{"perplexity", "compare"} {
			t.Run(verb+" "+name, func(t *testing.T) {
				var in, path string
				if c.checkpoint {
					in = checkpointOf(t, "llama", 1)
					path = filepath.Join(in, "model.safetensors")
				} else {
					in = quantized(t, base, "F16")[0]
					path = in
				}
				args := []string{"ggeval", verb, "--progress", "json", "-f", text, "-c", "16", "--chunks", "4"}
				if verb == "compare" {
					args = append(args, base)
				}
				refused := false
				log := &clitest.Trigger{On: `"progress"`, Do: func() {
					err := c.change(path)
					if refused = clitest.Refused(err); err != nil && !refused {
						t.Fatal(err)
					}
				}}
				cmd := command()
				cmd.Writer, cmd.ErrWriter = log, log
				err := tool.Run(context.Background(), cmd, append(args, in))
				if log.Do != nil {
					t.Fatal("no progress")
				}
				if refused {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if code := tool.Code(err); code != 3 || !strings.Contains(err.Error(), "changed") {
					t.Errorf("exit code %d, %v; want 3", code, err)
				}
			})
		}
	}
}
