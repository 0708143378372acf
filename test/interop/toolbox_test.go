package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestSplit compares shards with those of llama-gguf-split, then the merged files, then the shards of merged files.
func TestSplit(t *testing.T) {
	o := start(t)
	o.script(t, "refconvert.py", gollama(t), work+"/f16.gguf", "--outtype", "f16", "--quiet")
	o.tool(t, "llama-quantize", "--tensor-type", "attn_q=q2_k", work+"/f16.gguf", work+"/odd.gguf", "Q4_0")
	o.script(t, "mkhf.py", "llama", work+"/llama", "--opt", "edge=1")
	o.script(t, "refconvert.py", work+"/llama", work+"/tiny.gguf", "--outtype", "f32", "--quiet")
	for _, in := range []string{"f16", "odd", "tiny"} {
		for _, args := range []string{"", "--split-max-tensors 1", "--split-max-tensors 7", "--split-max-size 4M",
			"--split-max-size 1G", "--split-max-tensors 20 --no-tensor-first-split",
			"--split-max-size 5M --no-tensor-first-split"} {
			removeOutputs()
			flags := strings.Fields(args)
			o.tool(t, append(append([]string{"llama-gguf-split", "--split"}, flags...), work+"/"+in+".gguf",
				work+"/ref")...)
			ours(t, "ggtool", append(append([]string{"split", "--progress", "none"}, flags...),
				root+work+"/"+in+".gguf", root+work+"/ours")...)
			refs, _ := filepath.Glob(root + work + "/ref-*.gguf")
			mine, _ := filepath.Glob(root + work + "/ours-*.gguf")
			if len(refs) == 0 || len(refs) != len(mine) {
				t.Errorf("%s %s: %d shards, reference %d", in, args, len(mine), len(refs))
				continue
			}
			for i := range refs {
				same(t, mine[i], refs[i])
			}
			first := filepath.Base(refs[0])
			o.tool(t, "llama-gguf-split", "--merge", work+"/"+first, work+"/ref.gguf")
			ours(t, "ggtool", "merge", "--progress", "none", root+work+"/"+first, root+work+"/ours.gguf")
			same(t, root+work+"/ours.gguf", root+work+"/ref.gguf")
			o.tool(t, "llama-gguf-split", "--split", "--split-max-tensors", "5", work+"/ref.gguf", work+"/refa")
			ours(t, "ggtool", "split", "--progress", "none", "--max-tensors", "5", root+work+"/"+first,
				root+work+"/oursa")
			again, _ := filepath.Glob(root + work + "/refa-*.gguf")
			for _, ref := range again {
				same(t, strings.Replace(ref, "refa-", "oursa-", 1), ref)
			}
			t.Logf("%s %s: %d shards, then %d", in, args, len(refs), len(again))
		}
	}
}

// TestMeta compares with the output of gguf-new-metadata and gguf-set-metadata. The first writes general.architecture
// at the beginning, where converters write it.
func TestMeta(t *testing.T) {
	o := start(t)
	o.script(t, "refconvert.py", gollama(t), work+"/f16.gguf", "--outtype", "f16", "--quiet")
	if err := os.WriteFile(root+work+"/template.jinja", []byte("{% for m in messages %}{{ m }}\n{% endfor %}"),
		0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ ref, ours []string }{
		{[]string{"--general-name", "A name"}, []string{"--set", "general.name=str:A name"}},
		{[]string{"--general-description", "Wörter: 1, 2"}, []string{"--set", "general.description=str:Wörter: 1, 2"}},
		{[]string{"--chat-template-file", work + "/template.jinja"},
			[]string{"--template", root + work + "/template.jinja"}},
		{[]string{"--pre-tokenizer", "llama-bpe"}, []string{"--set", "tokenizer.ggml.pre=str:llama-bpe"}},
		{[]string{"--remove-metadata", "general.name", "--remove-metadata", "tokenizer.ggml.scores"},
			[]string{"--remove", "general.name", "--remove", "tokenizer.ggml.scores"}},
		{[]string{"--special-token-by-id", "bos", "5"}, []string{"--special-token", "bos=#5"}},
		{[]string{"--special-token-by-id", "mask", "7", "--special-token-by-id", "fim_pre", "0"},
			[]string{"--special-token", "mask=#7", "--special-token", "fim_pre=#0"}},
	} {
		removeOutputs()
		o.tool(t, append(append([]string{"gguf-new-metadata", "--force"}, c.ref...), work+"/f16.gguf",
			work+"/ref.gguf")...)
		ours(t, "ggtool", append(append([]string{"meta", "--progress", "none"}, c.ours...), "-o",
			root+work+"/ours.gguf", root+work+"/f16.gguf")...)
		same(t, root+work+"/ours.gguf", root+work+"/ref.gguf")
	}
	for _, kv := range [][2]string{{"llama.block_count", "5"}, {"llama.attention.layer_norm_rms_epsilon", "0.001"},
		{"tokenizer.ggml.bos_token_id", "4294967295"}} {
		for _, name := range []string{"ref", "ours"} {
			data, err := os.ReadFile(root + work + "/f16.gguf")
			if err == nil {
				err = os.WriteFile(root+work+"/"+name+".gguf", data, 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		o.tool(t, "gguf-set-metadata", "--force", work+"/ref.gguf", kv[0], kv[1])
		// No token has the last id, which ggtool takes with --force only.
		ours(t, "ggtool", "meta", "--force", "--set", kv[0]+"="+kv[1], root+work+"/ours.gguf")
		same(t, root+work+"/ours.gguf", root+work+"/ref.gguf")
	}
}

// TestHash compares with the hashes of python3-gguf's gguf_hash.
func TestHash(t *testing.T) {
	o := start(t)
	o.script(t, "refconvert.py", gollama(t), work+"/f16.gguf", "--outtype", "f16", "--quiet")
	o.tool(t, "llama-quantize", work+"/f16.gguf", work+"/q.gguf", "Q4_K_M")
	for _, name := range []string{"f16", "q"} {
		want := strings.Fields(o.tool(t, "python3", "-m", "gguf.scripts.gguf_hash", work+"/"+name+".gguf"))
		got := strings.Fields(strings.ReplaceAll(ours(t, "ggtool", "hash", "--sha1", "--sha256", "--uuid",
			root+work+"/"+name+".gguf"), root, ""))
		if len(got) < 3*50 || !slices.Equal(got, want) {
			t.Errorf("%s: %d fields, want %d: %.200s, want %.200s", name, len(got), len(want), got, want)
		}
	}
}

// TestDump compares the lists of inspect and gguf-dump: each key with its type and value, arrays element by element,
// and each tensor with its shape and type, in order.
func TestDump(t *testing.T) {
	o := start(t)
	o.script(t, "refconvert.py", gollama(t), work+"/f16.gguf", "--outtype", "f16", "--quiet")
	o.tool(t, "llama-quantize", work+"/f16.gguf", work+"/q.gguf", "Q4_K_M")
	o.script(t, "mkhf.py", "llama", work+"/llama", "--opt", "edge=1")
	o.script(t, "refconvert.py", work+"/llama", work+"/tiny.gguf", "--outtype", "f32", "--quiet")
	types := map[string]string{"str": "STRING", "u8": "UINT8", "i8": "INT8", "u16": "UINT16", "i16": "INT16",
		"u32": "UINT32", "i32": "INT32", "u64": "UINT64", "i64": "INT64", "f32": "FLOAT32", "f64": "FLOAT64",
		"bool": "BOOL"}
	for _, name := range []string{"f16", "q", "tiny"} {
		var ref struct {
			Metadata map[string]struct {
				Index      int
				Type       string
				ArrayTypes []string `json:"array_types"`
				Value      any
			}
			Tensors map[string]struct {
				Index int
				Shape []int64
				Type  string
			}
		}
		if err := json.Unmarshal([]byte(o.tool(t, "sh", "-c",
			"gguf-dump --json --json-array "+work+"/"+name+".gguf 2> /dev/null")), &ref); err != nil {
			t.Fatal(err)
		}
		var mine struct {
			Version  int
			Metadata []struct {
				Key, Type   string
				ElementType string `json:"element_type"`
				Value       any
			}
			Tensors []struct {
				Name, Type string
				NE         []int64
			}
		}
		if err := json.Unmarshal([]byte(ours(t, "ggtool", "inspect", "--json", "--full", root+work+"/"+name+".gguf")),
			&mine); err != nil {
			t.Fatal(err)
		}
		const fields = 3 // of the header, which the reference lists as keys
		if len(mine.Metadata)+fields != len(ref.Metadata) || len(mine.Tensors) != len(ref.Tensors) ||
			len(mine.Tensors) < 20 || float64(mine.Version) != ref.Metadata["GGUF.version"].Value {
			t.Errorf("%s: version %d, %d keys and %d tensors, want %v, %d and %d", name, mine.Version,
				len(mine.Metadata), len(mine.Tensors), ref.Metadata["GGUF.version"].Value, len(ref.Metadata)-fields,
				len(ref.Tensors))
		}
		// ours prints the shortest decimal that parses to the float32
		single := func(v any) any {
			if f, ok := v.(float64); ok {
				return float32(f)
			}
			return v
		}
		for i, kv := range mine.Metadata {
			want, ok := ref.Metadata[kv.Key]
			list := types[kv.Type] == "" // the reference names a list's type only where it has elements
			if !ok || want.Index != i+fields || list != (want.Type == "ARRAY") || list && len(want.ArrayTypes) > 0 &&
				types[kv.ElementType] != want.ArrayTypes[0] || !list && types[kv.Type] != want.Type ||
				!reflect.DeepEqual(kv.Value, want.Value) &&
					(kv.Type != "f32" || single(kv.Value) != single(want.Value)) {
				t.Errorf("%s: key %d, %q, type %s of %s, %v; want %+v", name, i, kv.Key, kv.Type, kv.ElementType,
					kv.Value, want)
			}
		}
		for i, x := range mine.Tensors {
			if want, ok := ref.Tensors[x.Name]; !ok || want.Index != i || !slices.Equal(x.NE, want.Shape) ||
				x.Type != want.Type {
				t.Errorf("%s: tensor %d, %q: %s %v; want %+v", name, i, x.Name, x.Type, x.NE, want)
			}
		}
		t.Logf("%s: %d keys, %d tensors", name, len(mine.Metadata), len(mine.Tensors))
	}
}

// TestShowStatistics compares each number that llama-imatrix --show-statistics prints.
func TestShowStatistics(t *testing.T) {
	o := start(t)
	o.script(t, "refconvert.py", gollama(t), work+"/f16.gguf", "--outtype", "f16", "--quiet")
	data, err := os.ReadFile("../../imatrix/testdata/imatrix_real.gguf")
	if err == nil {
		err = os.WriteFile(root+work+"/im.gguf", data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Tensors []map[string]any
		Layers  []map[string]any
	}
	if err := json.Unmarshal([]byte(ours(t, "ggtool", "imatrix", "show", "--json", root+work+"/im.gguf")),
		&report); err != nil {
		t.Fatal(err)
	}
	text := func(r map[string]any, name, format string) string {
		v, ok := r[name].(float64)
		if !ok {
			return "nan"
		}
		return fmt.Sprintf(format, v)
	}
	want := map[string][]string{}
	for _, line := range strings.Split(o.tool(t, "llama-imatrix", "--show-statistics", "-m", work+"/f16.gguf",
		"--in-file", work+"/im.gguf"), "\n") {
		fields := strings.Fields(strings.NewReplacer("|", " ", "%", " ").Replace(line))
		switch {
		case len(fields) == 12 && strings.HasSuffix(fields[1], ".weight"):
			want[fields[1]] = fields[2:]
		case len(fields) == 7 && strings.Count(line, "|") == 2 && !strings.Contains(line, "Layer"):
			want[fields[0]] = fields[1:]
		}
	}
	got := map[string][]string{}
	for _, r := range report.Tensors {
		got[r["tensor"].(string)] = []string{text(r, "mean", "%.4f"), text(r, "std_deviation", "%.4f"),
			text(r, "skewness", "%.4f"), text(r, "kurtosis", "%.4f"), text(r, "h_norm", "%.2f"),
			text(r, "sum_sq", "%.4f"), text(r, "gain", "%.2f"),
			text(r, "l2_dist", "%.4f"), text(r, "pearson", "%.4f"), text(r, "covariance", "%.4f")}
	}
	for _, r := range report.Layers {
		name := text(r, "layer", "%.0f")
		if name == "-1" {
			name = "-"
		}
		got[name] = []string{text(r, "sum_sq", "%.4f"), text(r, "gain", "%.2f"), text(r, "l2_dist", "%.4f"),
			text(r, "cossim", "%.4f"), text(r, "pearson", "%.4f"), text(r, "covariance", "%.4f")}
	}
	if len(want) != 18 || len(got) != len(want) {
		t.Errorf("%d rows, the reference prints %d, want 18 of both", len(got), len(want))
	}
	for name, values := range want {
		if !slices.Equal(got[name], values) {
			t.Errorf("%s: %v, want %v", name, got[name], values)
		}
	}
}

// TestEndian compares with gguf-convert-endian, for the types that it supports.
func TestEndian(t *testing.T) {
	o := start(t)
	o.script(t, "refconvert.py", gollama(t), work+"/f16.gguf", "--outtype", "f16", "--quiet")
	for _, typ := range []string{"F16", "Q8_0", "Q4_0", "BF16"} {
		o.tool(t, "llama-quantize", "--pure", work+"/f16.gguf", work+"/ref.gguf", typ)
		ours(t, "ggtool", "endian", "--force", "--progress", "none", root+work+"/ref.gguf", root+work+"/ours.gguf")
		o.tool(t, "sh", "-c", "echo YES | gguf-convert-endian "+work+"/ref.gguf big")
		same(t, root+work+"/ours.gguf", root+work+"/ref.gguf")
		ours(t, "ggtool", "endian", "--force", "--progress", "none", "--to", "little", root+work+"/ref.gguf",
			root+work+"/ours.gguf")
		o.tool(t, "llama-quantize", "--pure", work+"/f16.gguf", work+"/ref.gguf", typ)
		same(t, root+work+"/ours.gguf", root+work+"/ref.gguf")
	}
}
