package release

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/fault"
	"ggforge/gguf"
)

// imageFile writes a file with the tensors by which flux is recognized, and a weight.
func imageFile(t *testing.T, dir string) string {
	t.Helper()
	var tensors []safetensorstest.Tensor
	for _, name := range []string{"double_blocks.0.img_attn.qkv.weight", "double_blocks.0.img_attn.proj.weight"} {
		tensors = append(tensors, safetensorstest.Tensor{Name: name, DType: safetensors.BF16, Shape: []int64{8, 256},
			Data: make([]byte, 8*256*2)})
	}
	path := filepath.Join(dir, "flux1-tiny-dev.safetensors")
	if err := safetensorstest.Write(path, tensors, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestImageModel makes a release of an image model from its single file: the models are called after it. What would need
// a graph is refused, with the reason.
func TestImageModel(t *testing.T) {
	dir := t.TempDir()
	source := imageFile(t, dir)
	plan := func(more string) *Plan {
		p, err := Parse("plan.yaml", []byte("source: "+source+"\noutput: "+filepath.Join(dir, "out")+
			"\noutputs: [Q4_K_M, Q8_0]\ncard: {base_model: acme/Flux-Tiny}\n"+more))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	r, err := Prepare(context.Background(), plan(""), Options{Program: "test 1"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	for _, want := range []string{"flux1-tiny-dev-Q4_K_M.gguf", "flux1-tiny-dev-Q8_0.gguf", "README.md"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s among %q", want, names)
		}
	}
	card, err := os.ReadFile(filepath.Join(dir, "out", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pipeline_tag: text-to-image", "base_model: acme/Flux-Tiny", "Unet Loader (GGUF)"} {
		if !strings.Contains(string(card), want) {
			t.Errorf("the card has no %q", want)
		}
	}
	text := filepath.Join(dir, "text.txt")
	if err := os.WriteFile(text, []byte("a text"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"calibration: {text: " + text + "}", "evaluation: {text: " + text + "}"} {
		_, err := Prepare(context.Background(), plan(more), Options{Program: "test 1"})
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "have no graph here") {
			t.Errorf("%s: %v", more, err)
		}
	}
}

// TestImageTargets chooses the types of an image model by errors of weights, without a text; a language model needs one.
func TestImageTargets(t *testing.T) {
	dir := t.TempDir()
	var tensors []safetensorstest.Tensor
	for i, name := range []string{"double_blocks.0.img_attn.proj.weight", "double_blocks.0.img_mlp.0.weight",
		"double_blocks.0.img_mlp.2.weight"} {
		data := make([]byte, 0, 64*256*2)
		for k := range 64 * 256 {
			v := float32(k*k%(997+i)-500) / float32(300+k%(7*i+1)) // of other shapes in each
			data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(v)>>16))
		}
		tensors = append(tensors, safetensorstest.Tensor{Name: name, DType: safetensors.BF16, Shape: []int64{64, 256},
			Data: data})
	}
	source := filepath.Join(dir, "flux1-tiny.safetensors")
	if err := safetensorstest.Write(source, tensors, nil); err != nil {
		t.Fatal(err)
	}
	plan := func(source, outputs string) *Plan {
		p, err := Parse("plan.yaml", []byte("source: "+source+"\noutput: "+filepath.Join(dir, "out")+
			"\ncard: {off: true}\noutputs:\n"+outputs))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	const most = 36 << 10
	r, err := Prepare(context.Background(), plan(source, "- {type: Q4_K_M, name: A, bpw: 5.5}\n"+
		"- {type: Q4_K_M, name: B, size: 36K}\n- {type: Q4_K_M, name: C, like: Q3_K_S}\n- Q8_0\n"),
		Options{Program: "test 1"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Predict(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for _, name := range []string{"A", "B", "C", "Q8_0"} {
		s, err := gguf.OpenSet(filepath.Join(dir, "out", "flux1-tiny-"+name+".gguf"))
		if err != nil {
			t.Fatal(err)
		}
		var bits, weights int64
		for _, x := range s.Files[0].Tensors {
			n := gguf.Rows(x.NE) * gguf.RowLen(x.NE)
			bits, weights = bits+8*gguf.Rows(x.NE)*x.Type.RowBytes(gguf.RowLen(x.NE)), weights+n
		}
		s.Close()
		info, err := os.Stat(filepath.Join(dir, "out", "flux1-tiny-"+name+".gguf"))
		if err != nil {
			t.Fatal(err)
		}
		sizes[name] = info.Size()
		if bpw := float64(bits) / float64(weights); name == "A" && (bpw > 5.5 || bpw < 4.5) {
			t.Errorf("%.3f bits per weight, want at most 5.5", bpw)
		}
	}
	if sizes["B"] > most || sizes["B"] < most*3/4 || sizes["C"] >= sizes["A"] {
		t.Errorf("sizes %v, want at most %d of B", sizes, most)
	}
	for _, c := range []struct{ source, output, want string }{
		{source, "- {type: Q4_K_M, kld: 0.1}\n", "over a text: want calibration.text"},
		{gollama, "- {type: Q4_0, bpw: 5}\n", "line 5: output Q4_0: types of tensors are chosen by a text"},
	} {
		if _, err := Prepare(context.Background(), plan(c.source, c.output), Options{Program: "test 1"}); !errors.Is(err,
			fault.Usage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.output, err)
		}
	}
}
