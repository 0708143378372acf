package verify_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/publish/verify"
)

// model returns a small file, intact unless change is not nil.
func model(change func(m *gguf.Metadata, tensors *[]gguf.Tensor, data []byte)) []byte {
	m := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "llama.block_count", Value: gguf.Uint32(1)},
		{Key: "llama.context_length", Value: gguf.Uint32(64)},
		{Key: "llama.embedding_length", Value: gguf.Uint32(32)},
		{Key: "llama.feed_forward_length", Value: gguf.Uint32(64)},
		{Key: "llama.attention.head_count", Value: gguf.Uint32(4)},
		{Key: "llama.attention.layer_norm_rms_epsilon", Value: gguf.Float32(1e-5)},
		{Key: "llama.vocab_size", Value: gguf.Uint32(4)},
		{Key: "general.quantization_version", Value: gguf.Uint32(2)},
		{Key: "tokenizer.ggml.model", Value: gguf.String("llama")},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings([]string{"<unk>", "<s>", "</s>", "a"})},
		{Key: "tokenizer.ggml.scores", Value: gguf.Float32s([]float32{0, 0, 0, 0})},
		{Key: "tokenizer.ggml.token_type", Value: gguf.Int32s([]int32{2, 3, 3, 1})},
		{Key: "tokenizer.ggml.bos_token_id", Value: gguf.Uint32(1)},
	}
	tensors := []gguf.Tensor{
		{Name: "token_embd.weight", NE: []int64{32, 4}, Type: gguf.TypeQ8_0},
		{Name: "output_norm.weight", NE: []int64{32}, Type: gguf.TypeF32},
		{Name: "blk.0.attn_norm.weight", NE: []int64{32}, Type: gguf.TypeF32},
		{Name: "blk.0.ffn_norm.weight", NE: []int64{32}, Type: gguf.TypeF32},
		{Name: "blk.0.attn_k.weight", NE: []int64{32, 32}, Type: gguf.TypeQ8_0},
		{Name: "blk.0.attn_v.weight", NE: []int64{32, 32}, Type: gguf.TypeQ8_0},
		{Name: "blk.0.attn_output.weight", NE: []int64{32, 32}, Type: gguf.TypeQ8_0},
		{Name: "blk.0.ffn_gate.weight", NE: []int64{32, 64}, Type: gguf.TypeQ8_0},
		{Name: "blk.0.ffn_down.weight", NE: []int64{64, 32}, Type: gguf.TypeQ8_0},
		{Name: "blk.0.attn_q.weight", NE: []int64{32, 32}, Type: gguf.TypeQ8_0},
		{Name: "blk.0.ffn_up.weight", NE: []int64{32, 64}, Type: gguf.TypeF16},
	}
	data := make([]byte, gguf.Layout(tensors, 32))
	if change != nil {
		change(&m, &tensors, data)
	}
	return append(gguf.AppendHeader(nil, m, tensors, 32), data...)
}

// TestDefects checks that all defects of a file are found.
func TestDefects(t *testing.T) {
	type change = func(m *gguf.Metadata, tensors *[]gguf.Tensor, data []byte)
	for _, c := range []struct {
		name   string
		change change
		cut    int
		want   []string // texts of separate findings; a note begins with "note: "
	}{
		{"whole", nil, 0, nil},
		{"truncated", nil, 5000, []string{`tensor "blk.0.ffn_up.weight" (byte`,
			`note: tensor "blk.0.attn_q.weight" (byte 10592): 3096 bytes after it belong to no tensor`}},
		{"header", nil, 8000, nil},
		{"template", func(m *gguf.Metadata, _ *[]gguf.Tensor, _ []byte) {
			m.Set("tokenizer.chat_template", gguf.String("{% if tools %}{{ x.y }}{{ 1 | nope }}{% endif %}\n{{ a['__mro__'] }}"))
			m.Set("tokenizer.chat_template.rag", gguf.String("{{ x"))
			m.Set("tokenizer.chat_template.other", gguf.String("{{ state.x }}"))
		}, 0, []string{`tokenizer.chat_template: line 2: the text "__mro__" names an attribute of Python's objects`,
			`note: tokenizer.chat_template: line 1: no filter named "nope"`,
			`note: tokenizer.chat_template: line 1: nothing sets the variable "x"`,
			`note: tokenizer.chat_template: line 2: nothing sets the variable "a"`,
			`note: the template gives no text: tokenizer.chat_template: line 2: `,
			`note: the template gives no text: tokenizer.chat_template.rag: line 1: `}},
		{"template of a number", func(m *gguf.Metadata, _ *[]gguf.Tensor, _ []byte) {
			m.Set("tokenizer.chat_template", gguf.Uint32(1))
		}, 0, []string{`key "tokenizer.chat_template": is 1, want a text`,
			`key "tokenizer.chat_template": type u32, want str`}},
		{"magic", func(_ *gguf.Metadata, _ *[]gguf.Tensor, _ []byte) {}, -1, []string{"not a GGUF file"}},
		{"overlap", func(_ *gguf.Metadata, x *[]gguf.Tensor, _ []byte) {
			(*x)[9].Offset = (*x)[8].Offset
			(*x)[10].Offset++
		}, 0, []string{`overlaps tensor "blk.0.ffn_down.weight"`, "offset 9249 is not a multiple of the alignment 32",
			"4096 bytes at offset 9249", `note: tensor "blk.0.attn_q.weight" (byte`}},
		{"beyond", func(_ *gguf.Metadata, x *[]gguf.Tensor, _ []byte) { (*x)[0].Offset, (*x)[1].Offset = 1<<40, 1<<41 },
			0,
			[]string{`tensor "token_embd.weight" (byte`, `tensor "output_norm.weight" (byte`,
				"note: header (byte 1344): 288 bytes after it"}},
		{"twice", func(m *gguf.Metadata, x *[]gguf.Tensor, _ []byte) {
			*m = append(*m, (*m)[1])
			(*x)[9].Name = (*x)[0].Name
		}, 0, []string{`key "llama.block_count" (byte`, `tensor "token_embd.weight" (byte`, "note: "}},
		{"scales", func(_ *gguf.Metadata, x *[]gguf.Tensor, data []byte) {
			binary.LittleEndian.PutUint16(data[34:], 0x7c00)
			binary.LittleEndian.PutUint32(data[(*x)[1].Offset+8:], math.Float32bits(float32(math.NaN())))
			binary.LittleEndian.PutUint16(data[(*x)[10].Offset+2*2000:], 0xfc00)
		}, 0, []string{`tensor "token_embd.weight": Q8_0 block 1 (byte offset 34): d is +Inf`,
			`tensor "output_norm.weight": F32 block 2 (byte offset 8): element is NaN`,
			`tensor "blk.0.ffn_up.weight": F16 block 2000 (byte offset 4000): element is -Inf`}},
		{"keys", func(m *gguf.Metadata, _ *[]gguf.Tensor, _ []byte) {
			m.Set("llama.context_length", gguf.String("64"))
			m.Delete("llama.embedding_length")
			m.Set("general.quantization_version", gguf.Uint32(1))
		}, 0, []string{`key "llama.context_length": type str, want u32`, `has no key "llama.embedding_length"`,
			`key "general.quantization_version": is 1`}},
		{"architecture", func(m *gguf.Metadata, _ *[]gguf.Tensor,
			_ []byte) {
			m.Set(gguf.KeyArchitecture, gguf.String("new"))
		}, 0, []string{`note: architecture "new" is not known`}},
		{"no architecture", func(m *gguf.Metadata, _ *[]gguf.Tensor, _ []byte) { m.Delete(gguf.KeyArchitecture) }, 0,
			[]string{"has no key \"general.architecture\""}},
		{"shapes", func(m *gguf.Metadata, _ *[]gguf.Tensor, _ []byte) {
			m.Set("llama.feed_forward_length", gguf.Uint32(65))
		}, 0, []string{`tensor "blk.0.ffn_gate.weight": dimensions 32 x 64, want 32 x 65: ` +
			`"llama.embedding_length" is 32, "llama.feed_forward_length" is 65`, `blk.0.ffn_up.weight`,
			`tensor "blk.0.ffn_down.weight": dimensions 64 x 32, want 65 x 32`}},
		{"missing", func(_ *gguf.Metadata, x *[]gguf.Tensor, _ []byte) { (*x)[4].Name = "blk.0.attn_x.weight" }, 0,
			[]string{`no tensor "blk.0.attn_k.weight", of dimensions 32 x 32: "llama.embedding_length" is 32`,
				`note: tensor "blk.0.attn_x.weight": no part of the architecture "llama" reads it`}},
		{"layers", func(m *gguf.Metadata, _ *[]gguf.Tensor, _ []byte) { m.Set("llama.block_count", gguf.Uint32(2)) }, 0,
			[]string{`no tensors of layer 1: "llama.block_count" is 2`}},
		{"tokens", func(m *gguf.Metadata, _ *[]gguf.Tensor, _ []byte) {
			m.Set("tokenizer.ggml.scores", gguf.Float32s([]float32{1}))
			m.Set("tokenizer.ggml.bos_token_id", gguf.Uint32(4))
		}, 0, []string{`key "tokenizer.ggml.scores": 1 values, but there are 4 tokens`,
			`note: key "tokenizer.ggml.bos_token_id": is 4`, "vocabulary: "}},
		{"long name", func(_ *gguf.Metadata, x *[]gguf.Tensor, _ []byte) {
			(*x)[4].Name = strings.Repeat("n", 100)
		}, 0, []string{"note: tensor \"" + strings.Repeat("n", 100) + `" has a name of more than 63 bytes: programs that`,
			"name of 100 bytes, want at most 63"}},
		{"image model", func(m *gguf.Metadata, x *[]gguf.Tensor, _ []byte) {
			m.Set(gguf.KeyArchitecture, gguf.String("wan"))
			(*x)[4].Name = strings.Repeat("n", 100)
			(*x)[5].Name = strings.Repeat("m", 128)
			(*x)[6].NE = []int64{32, 4, 2, 2, 2}
			(*x)[1].NE = []int64{0, 4}
		}, 0, []string{`note: 2 tensors, "` + strings.Repeat("n", 100) + `" among them, have a name of more than 63 bytes`,
			`note: tensor "blk.0.attn_output.weight" has more than 4 dimensions: ggml and gguf-py since`,
			`note: tensor "output_norm.weight" has a dimension of 0: ggml`,
			"name of 128 bytes, want at most 127", "note: has no key \"general.file_type\"",
			"note: tensor \"output_norm.weight\" (byte"}},
		{"padding", func(_ *gguf.Metadata, x *[]gguf.Tensor, data []byte) { data[(*x)[1].Offset-3] = 1 }, 0,
			[]string{`note: tensor "token_embd.weight" (byte`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := model(c.change)
			switch {
			case c.cut < 0:
				b[0] = 'X'
			case c.name == "header":
				b = b[:300]
			case c.cut > 0:
				b = b[:len(b)-1000]
			}
			path := filepath.Join(t.TempDir(), "m.gguf")
			if err := os.WriteFile(path, b, 0o666); err != nil {
				t.Fatal(err)
			}
			found, err := verify.Model(t.Context(), path, verify.Options{Workers: 2})
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, f := range found {
				line := strings.Replace(f.Text, path+": ", "", 1)
				if f.Note {
					line = "note: " + line
				}
				lines = append(lines, line)
			}
			if c.name == "header" {
				if len(lines) != 1 || !strings.Contains(lines[0], "the file ends after") {
					t.Errorf("%q", lines)
				}
				return
			}
			left := slices.Clone(lines)
			for _, want := range c.want {
				i := slices.IndexFunc(left, func(line string) bool {
					return strings.Contains(line, want) &&
						strings.HasPrefix(line, "note: ") == strings.HasPrefix(want, "note: ")
				})
				if i < 0 {
					t.Errorf("%q is not found in %q", want, lines)
					continue
				}
				left = slices.Delete(left, i, i+1)
			}
			if len(left) > 0 {
				t.Errorf("found, too: %q", left)
			}
			// a file has an error of structure exactly if Open refuses it
			if _, err := gguf.Parse(path, b); (err != nil) != slices.ContainsFunc(found, func(f verify.Finding) bool {
				return !f.Note && strings.Contains(f.Text, " (byte") && !strings.Contains(f.Text, "(byte offset")
			}) {
				t.Errorf("%v, and found %q", err, lines)
			}
		})
	}
}

// TestImageModel checks the findings about image models; of a language model the same keys mean nothing.
func TestImageModel(t *testing.T) {
	for _, c := range []struct {
		architecture string
		shape        gguf.Value
		names        []string
		want         []string // a note begins with "note: "
	}{
		{"sd1", gguf.Int32s([]int32{4, 3, 2}), nil, nil},
		{"sd1", gguf.Int32s([]int32{4, 3, 3}), nil, []string{`key "comfy.gguf.orig_shape.x": is `}},
		{"sd1", gguf.Int32s([]int32{1 << 30, 1 << 30, 1 << 30}), nil, []string{"has 24 elements"}},
		{"sd1", gguf.String("4, 3, 2"), nil, []string{`key "comfy.gguf.orig_shape.x": is str, want an array of i32`}},
		{"sd1", gguf.Strings([]string{"4"}), nil, []string{"want an array of i32"}},
		{"wan", gguf.Int32s([]int32{24}), nil,
			[]string{`key "general.architecture" is "wan", but by the names of its tensors the model is "sd1"`}},
		{"sd1", gguf.Int32s([]int32{24}), []string{"a"},
			[]string{`note: key "general.architecture" is "sd1": no known image`}},
		{"sd1", gguf.Int32s([]int32{24}), []string{"b"},
			[]string{`note: key "general.architecture" is "sd1": no known image`}},
		{"new", gguf.String("4, 3, 2"), nil, []string{`note: architecture "new" is not known`}},
	} {
		m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String(c.architecture)},
			{Key: "general.file_type", Value: gguf.Uint32(1)}, {Key: "comfy.gguf.orig_shape.x", Value: c.shape}}
		x := []gguf.Tensor{{Name: "x", NE: []int64{12, 2}, Type: gguf.TypeF32}}
		if c.names == nil {
			c.names = []string{"down_blocks.0.downsamplers.0.conv.weight"}
		}
		for _, name := range c.names {
			x = append(x, gguf.Tensor{Name: name, NE: []int64{1}, Type: gguf.TypeF32})
		}
		size := gguf.Layout(x, 32)
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := os.WriteFile(path, append(gguf.AppendHeader(nil, m, x, 32), make([]byte, size)...), 0o666); err != nil {
			t.Fatal(err)
		}
		found, err := verify.Model(t.Context(), path, verify.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, f := range found {
			line := strings.Replace(f.Text, path+": ", "", 1)
			if f.Note {
				line = "note: " + line
			}
			lines = append(lines, line)
		}
		if !slices.EqualFunc(lines, c.want, func(line, want string) bool {
			return strings.Contains(line, want) && strings.HasPrefix(line, "note: ") == strings.HasPrefix(want, "note: ")
		}) {
			t.Errorf("%s, %v: %q, want %q", c.architecture, c.shape, lines, c.want)
		}
	}
}

// TestShards checks the findings about shards that do not belong together.
func TestShards(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, no, count uint16, total int32, names ...string) string {
		m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("new")},
			{Key: gguf.KeySplitNo, Value: gguf.Uint16(no)}, {Key: gguf.KeySplitCount, Value: gguf.Uint16(count)},
			{Key: gguf.KeySplitTensors, Value: gguf.Int32(total)}}
		var tensors []gguf.Tensor
		for _, name := range names {
			tensors = append(tensors, gguf.Tensor{Name: name, NE: []int64{32}, Type: gguf.TypeF32})
		}
		data := make([]byte, gguf.Layout(tensors, 32))
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, append(gguf.AppendHeader(nil, m, tensors, 32), data...), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	look := func(path string, want ...string) {
		t.Helper()
		found, err := verify.Model(t.Context(), path, verify.Options{Structure: true})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		n := 0
		for _, f := range found {
			if !f.Note {
				text.WriteString(f.Text + "\n")
				n++
			}
		}
		if n != len(want) {
			t.Errorf("%s: %d errors, want %d:\n%s", path, n, len(want), text.String())
		}
		for _, w := range want {
			if !strings.Contains(text.String(), w) {
				t.Errorf("%s: %q is not in\n%s", path, w, text.String())
			}
		}
	}
	first := write("m-00001-of-00003.gguf", 0, 3, 3, "a")
	look(first, "shard 2 of 3", "shard 3 of 3", "is 3, but 1 tensors are right")
	write("m-00002-of-00003.gguf", 1, 3, 3, "b")
	last := write("m-00003-of-00003.gguf", 2, 3, 3, "c")
	look(first)
	look(last)
	write("m-00002-of-00003.gguf", 2, 3, 4, "a")
	look(first, "says it is shard 3 of 3, want 2 of 3", "split.tensors.count is 4", `tensor "a" is in`)
	// Only the first shard has the architecture, and with it the limits.
	long := strings.Repeat("n", 100)
	for architecture, want := range map[string][]string{"wan": nil, "llama": {"name of 100 bytes, want at most 63"}} {
		prefix := filepath.Join(dir, architecture)
		for no, m := range []gguf.Metadata{
			{{Key: gguf.KeyArchitecture, Value: gguf.String(architecture)}, {Key: gguf.KeySplitNo, Value: gguf.Uint16(0)},
				{Key: gguf.KeySplitCount, Value: gguf.Uint16(2)}},
			{{Key: gguf.KeySplitNo, Value: gguf.Uint16(1)}, {Key: gguf.KeySplitCount, Value: gguf.Uint16(2)}},
		} {
			x := []gguf.Tensor{{Name: []string{"a", long}[no], NE: []int64{1}, Type: gguf.TypeF32}}
			data := append(gguf.AppendHeader(nil, m, x, 32), make([]byte, gguf.Layout(x, 32))...)
			if err := os.WriteFile(gguf.ShardName(prefix, no, 2), data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		found, err := verify.Model(t.Context(), gguf.ShardName(prefix, 0, 2), verify.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var names, notes int
		for _, f := range found {
			if f.Note && strings.Contains(f.Text, "a name of more than 63 bytes") {
				notes++
			} else if len(want) > 0 && strings.Contains(f.Text, want[0]) {
				names++
			} else if strings.Contains(f.Text, "bytes") {
				t.Errorf("%s: %s", architecture, f.Text)
			}
		}
		if names != len(want) || notes != 1 {
			t.Errorf("%s: %+v", architecture, found)
		}
	}
	look(write("other.gguf", 0, 3, 3), "want a name ending in -00001-of-00003.gguf")
	if _, err := verify.Model(t.Context(), filepath.Join(dir, "no.gguf"), verify.Options{}); err == nil {
		t.Error("a file that is not there")
	}
}
