package convert

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/arch/diffusion"
	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/checkpoint/torch/torchfiletest"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/writer"
)

// imageCheckpoints is the folder to write the checkpoints of TestImageGolden to, from which the reference's converter
// makes the sums of testdata/image/golden.tsv; see the README there.
var imageCheckpoints = flag.String("image-checkpoints", "", "write checkpoints of image models to `DIR`")

// imageTensor makes a tensor of numbers that depend on its name only.
func imageTensor(name string, d safetensors.DType, shape ...int64) safetensorstest.Tensor {
	n := int64(1)
	for _, s := range shape {
		n *= s
	}
	state := uint64(crc32.ChecksumIEEE([]byte(name)))*2654435761 + 1
	var data []byte
	for range n {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		v := float32(int64(state>>40)-1<<23) / (1 << 22)
		switch d {
		case safetensors.F64:
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(float64(v)*1.0000001))
		case safetensors.F32:
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		case safetensors.BF16:
			data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(v)>>16))
		case safetensors.F16:
			data = binary.LittleEndian.AppendUint16(data, uint16(0x3000|state>>48&0x8FFF)) // 2^-3 to 2
		case safetensors.I64:
			data = binary.LittleEndian.AppendUint64(data, state>>52)
		default:
			data = append(data, byte(state>>32)&0xBF) // no NaN
		}
	}
	return safetensorstest.Tensor{Name: name, DType: d, Shape: shape, Data: data}
}

// imageModel makes a checkpoint of an architecture, with tensors of every kind that the rules are about.
func imageModel(m *diffusion.Model, d safetensors.DType) (list []safetensorstest.Tensor) {
	vectors := d
	if d == safetensors.F8_E4M3 {
		vectors = safetensors.BF16
	}
	sets := slices.Concat(m.Sets, m.More)
	at := slices.IndexFunc(sets, func(set []string) bool {
		return !slices.ContainsFunc(m.Banned, func(n string) bool { return slices.Contains(set, n) })
	})
	for _, name := range sets[at] {
		list = append(list, imageTensor(name, d, 24, 64))
	}
	list = append(list,
		imageTensor("tail.bias", vectors, 40),
		imageTensor("tail.scalar", vectors),
		imageTensor("tail.small.weight", d, 32, 32),
		imageTensor("tail.large.weight", d, 33, 32),
		imageTensor("tail.conv.weight", d, 16, 16, 3, 3),
		imageTensor("tail.pointwise.weight", d, 64, 48, 1, 1),
		imageTensor("tail.wide.weight", d, 6, 512),
		imageTensor("tail.batch", d, 1, 6, 256),
	)
	for i, part := range m.F32 {
		if m.Name == "qwen_image" {
			continue // names of Krea 2, for which the reference has no rules
		}
		list = append(list, imageTensor(fmt.Sprintf("tail.%d%s.weight", i, part), d, 20, 64))
	}
	for i, part := range m.Ignored {
		list = append(list, imageTensor(fmt.Sprintf("tail.%d%s", i, part), vectors, 4))
	}
	if m.FiveDims {
		list = append(list, imageTensor("patch.bias", vectors, 8), imageTensor("patch.weight", d, 8, 4, 1, 2, 2),
			imageTensor("last.weight", d, 4, 4, 3, 2, 2))
	}
	return list
}

// imageDTypes are the types that the checkpoints have.
var imageDTypes = []safetensors.DType{safetensors.BF16, safetensors.F16, safetensors.F32, safetensors.F64,
	safetensors.I64, safetensors.F8_E4M3, safetensors.F8_E5M2}

// writeImage converts a checkpoint and returns the path of the file.
func writeImage(t *testing.T, path string, opt Options) (*Job, string) {
	t.Helper()
	job, err := Prepare(t.Context(), path, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { job.Close() })
	out := filepath.Join(t.TempDir(), "out.gguf")
	if _, err := job.Write(t.Context(), out, writer.Options{}); err != nil {
		t.Fatal(err)
	}
	return job, out
}

// TestImageGolden compares files of every architecture and type with those of the reference's converter, tensors of five
// dimensions put in by its tool for them.
func TestImageGolden(t *testing.T) {
	f, err := os.Open("testdata/image/golden.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, sum, _ := strings.Cut(lines.Text(), "\t")
		want[name] = sum
	}
	dir := t.TempDir()
	if *imageCheckpoints != "" {
		dir = *imageCheckpoints
	}
	compared := 0
	for _, m := range diffusion.All() {
		for _, d := range imageDTypes {
			name := fmt.Sprintf("%s-%v", m.Name, d)
			path := filepath.Join(dir, name+".safetensors")
			if err := safetensorstest.Write(path, imageModel(&m, d), map[string]string{"format": "pt"}); err != nil {
				t.Fatal(err)
			}
			if !m.Reference {
				continue
			}
			_, out := writeImage(t, path, Options{})
			data, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(data)
			if got := hex.EncodeToString(sum[:]); got != want[name] {
				t.Errorf("%s: %s, want %s", name, got, want[name])
			}
			compared++
		}
	}
	if compared != len(want) {
		t.Errorf("%d files compared, %d in the list", compared, len(want))
	}
}

// TestImageTypes checks the types of an architecture that the reference does not know, and those of every output type.
func TestImageTypes(t *testing.T) {
	for _, c := range []struct {
		model string
		d     safetensors.DType
		out   OutType
		want  string // of tail.large.weight, tail.small.weight, tail.bias and the file
	}{
		{"mochi", safetensors.BF16, Auto, "BF16 F32 F32 32"},
		{"ideogram4", safetensors.F16, Auto, "F16 F16 F16 1"},
		{"minimax_h3", safetensors.F32, Auto, "F16 F32 F32 1"},
		{"flux", safetensors.BF16, F16, "F16 F32 F32 1"},
		{"flux", safetensors.BF16, F32, "F32 F32 F32 0"},
		{"flux", safetensors.F16, BF16, "BF16 F32 F32 32"},
		{"flux", safetensors.F16, F16, "F16 F16 F16 1"},
		{"wan", safetensors.F8_E4M3, BF16, "BF16 F32 F32 32"},
	} {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		if err := safetensorstest.Write(path, imageModel(diffusion.ByName(c.model), c.d), nil); err != nil {
			t.Fatal(err)
		}
		job, out := writeImage(t, path, Options{Type: c.out})
		s, err := gguf.OpenSet(out)
		if err != nil {
			t.Fatal(err)
		}
		types := map[string]gguf.Type{}
		for _, x := range s.Files[0].Tensors {
			types[x.Name] = x.Type
		}
		file, _ := s.Metadata().Get(gguf.KeyFileType)
		n, _ := file.Int()
		if got := fmt.Sprint(types["tail.large.weight"], types["tail.small.weight"], types["tail.bias"], n); got != c.want ||
			job.Architecture() != c.model {
			t.Errorf("%s %v %v: %s, want %s", c.model, c.d, c.out, got, c.want)
		}
		s.Close()
	}
}

// fluxWith is a checkpoint of flux with further tensors.
func fluxWith(more ...safetensorstest.Tensor) []safetensorstest.Tensor {
	return append(imageModel(diffusion.ByName("flux"), safetensors.BF16), more...)
}

// TestImageScales converts the two forms in which ComfyUI stores weights in 8 bits with a scale: the product is written,
// marks and scales of activations are not.
func TestImageScales(t *testing.T) {
	weight := imageTensor("tail.q.weight", safetensors.F8_E4M3, 8, 32)
	scale := safetensorstest.Tensor{Name: "tail.q.weight_scale", DType: safetensors.F32, Shape: []int64{},
		Data: safetensorstest.F32(0.25)}
	input := scale
	input.Name = "tail.q.input_scale"
	text := func(s string) safetensorstest.Tensor {
		return safetensorstest.Tensor{Name: "tail.q.comfy_quant", DType: safetensors.U8, Shape: []int64{int64(len(s))},
			Data: []byte(s)}
	}
	old, oldInput := scale, input
	old.Name, oldInput.Name, old.Shape = "tail.q.scale_weight", "tail.q.scale_input", []int64{1}
	for name, more := range map[string][]safetensorstest.Tensor{
		"comfy_quant": {weight, scale, input, text(`{"format": "float8_e4m3fn"}`)},
		"scaled_fp8": {weight, old, oldInput,
			{Name: "scaled_fp8", DType: safetensors.F8_E4M3, Shape: []int64{2}, Data: make([]byte, 2)}},
		"scaled_fp8 empty": {weight, old, {Name: "scaled_fp8", DType: safetensors.F8_E4M3, Shape: []int64{0}}},
	} {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		if err := safetensorstest.Write(path, fluxWith(more...), nil); err != nil {
			t.Fatal(err)
		}
		job, err := Prepare(t.Context(), path, Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		i := slices.IndexFunc(job.Plan, func(x Tensor) bool { return x.Name == weight.Name })
		if len(job.Plan) != len(fluxWith())+1 || i < 0 {
			t.Fatalf("%s: %d tensors", name, len(job.Plan))
		}
		got, buf := make([]float32, 8*32), []byte(nil)
		if err := rows.Decode(job.Plan[i].Source, got, &buf, 0, 8); err != nil {
			t.Fatal(err)
		}
		for k, c := range weight.Data {
			e, m := int(c>>3&15), float64(c&7)
			want := math.Ldexp(m, -9)
			if e > 0 {
				want = math.Ldexp(8+m, e-10)
			}
			if c&0x80 != 0 {
				want = -want
			}
			if float64(got[k]) != want/4 {
				t.Fatalf("%s: element %d of code %#x: %v, want %v", name, k, c, got[k], want/4)
			}
		}
		job.Close()
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := safetensorstest.Write(path, fluxWith(weight, scale, text(`{"format": "fp6"}`)), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(t.Context(), path, Options{}); !errors.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), `"fp6"`) {
		t.Errorf("fp6: %v", err)
	}
}

// TestImageMarks converts weights whose formats are in the metadata of the file, with and without the prefix of its
// tensors, and weights that are padded to whole blocks: rows beyond those of the bias are not written.
func TestImageMarks(t *testing.T) {
	named := func(name string, d safetensors.DType, shape ...int64) safetensorstest.Tensor {
		n := int64(1)
		for _, s := range shape {
			n *= s
		}
		data := make([]byte, n*int64(d.Bits()/8))
		for i := range data {
			data[i] = byte(i%7) + 1
		}
		return safetensorstest.Tensor{Name: name, DType: d, Shape: shape, Data: data}
	}
	const prefix = "model.diffusion_model."
	scale := safetensorstest.Tensor{Name: "r.weight_scale", DType: safetensors.F32, Shape: []int64{8, 1},
		Data: safetensorstest.F32(1, 2, 3, 4, 5, 6, 7, 8)}
	whole := safetensorstest.Tensor{Name: "n.weight_scale_2", DType: safetensors.F32, Data: safetensorstest.F32(2)}
	list := fluxWith(named("r.weight", safetensors.I8, 8, 16), scale, named("n.weight", safetensors.U8, 16, 8),
		named("n.weight_scale", safetensors.F8_E4M3, 128, 4), whole, named("n.bias", safetensors.BF16, 9))
	for i := range list {
		list[i].Name = prefix + list[i].Name
	}
	for _, layers := range []string{
		`"model.diffusion_model.r": {"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 4}, ` +
			`"model.diffusion_model.n": {"format": "nvfp4"}, "elsewhere": {"format": "?"}`,
		`"r": {"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 4}, "n": {"format": "nvfp4"}`,
	} {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		if err := safetensorstest.Write(path, list, map[string]string{marksKey: `{"layers": {` + layers + `}}`}); err != nil {
			t.Fatal(err)
		}
		job, err := Prepare(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]float32{}
		for _, x := range job.Plan {
			if n := gguf.Rows(x.Source.NE()); x.Name == "r.weight" || x.Name == "n.weight" {
				got[x.Name] = make([]float32, n*gguf.RowLen(x.Source.NE()))
				if err := rows.Decode(x.Source, got[x.Name], new([]byte), 0, n); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(job.Plan) != len(fluxWith())+3 || len(got["r.weight"]) != 8*16 || len(got["n.weight"]) != 9*16 {
			t.Fatalf("%s: %d tensors, %d and %d elements", layers, len(job.Plan), len(got["r.weight"]), len(got["n.weight"]))
		}
		// row 1 has codes 3, 4, 5, 6, a scale of 2: the sum of 18, less twice the other end, times 2/2
		if r := got["r.weight"][16:20]; !slices.Equal(r, []float32{6, 8, 10, 12}) {
			t.Errorf("%s: %v, want [6 8 10 12]", layers, r)
		}
		// codes 0, 1, 0, 2, a scale of 2^-9, twice
		if n := got["n.weight"][:4]; !slices.Equal(n, []float32{0, 0x1p-9, 0, 0x1p-8}) {
			t.Errorf("%s: %v", layers, n)
		}
		job.Close()
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := safetensorstest.Write(path, list, map[string]string{marksKey: `{"layers": []}`}); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(t.Context(), path, Options{}); !errors.Is(err, fault.Broken) ||
		!strings.Contains(err.Error(), marksKey) {
		t.Errorf("layers of another kind: %v", err)
	}
}

// TestImageConfig writes the settings of LTX-2 from the metadata of the checkpoint, and warns of a file without.
func TestImageConfig(t *testing.T) {
	list := append(imageModel(diffusion.ByName("ltxv"), safetensors.BF16),
		imageTensor("audio_patchify_proj.weight", safetensors.BF16, 4, 4))
	const text = `{"transformer": {"num_layers": 48, "a": "\u00e4"},  "vae": {}}`
	for _, c := range []struct {
		model    []safetensorstest.Tensor
		metadata map[string]string
		want     string // the value, or a part of the warning or error
		kind     error
	}{
		{list, map[string]string{configKey: text, "format": "pt"}, text, nil},
		{list, map[string]string{"format": "pt"}, `have no "config"`, nil},
		{list[:len(list)-1], nil, "", nil},
		{fluxWith(), map[string]string{configKey: text}, "", nil},
		{list, map[string]string{configKey: `[1]`}, "want an object", fault.Broken},
		{list, map[string]string{configKey: `{"a"`}, "metadata config", fault.Broken},
	} {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		if err := safetensorstest.Write(path, c.model, c.metadata); err != nil {
			t.Fatal(err)
		}
		if c.kind != nil {
			if _, err := Prepare(t.Context(), path, Options{}); !errors.Is(err, c.kind) ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: %v", c.metadata, err)
			}
			continue
		}
		job, out := writeImage(t, path, Options{})
		s, err := gguf.OpenSet(out)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(job.Warnings, "\n")
		if v, ok := s.Metadata().Get(configKey); ok {
			got, _ = v.Str()
		}
		if c.want == text && got != text || !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: %q, want %q", c.metadata, got, c.want)
		}
		s.Close()
	}
}

// TestImageInputs converts one model from all kinds of inputs: the file is the same.
func TestImageInputs(t *testing.T) {
	dir := t.TempDir()
	list := fluxWith()
	slices.SortFunc(list, func(a, b safetensorstest.Tensor) int { return strings.Compare(a.Name, b.Name) })
	plain := filepath.Join(dir, "plain.safetensors")
	if err := safetensorstest.Write(plain, list, nil); err != nil {
		t.Fatal(err)
	}
	job, out := writeImage(t, plain, Options{})
	want, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if path, err := job.Output(""); err != nil || path != filepath.Join(dir, "plain-BF16.gguf") {
		t.Errorf("%s, %v", path, err)
	}
	named := func(prefix string) (all []safetensorstest.Tensor) {
		for _, x := range list {
			x.Name = prefix + x.Name
			all = append(all, x)
		}
		return all
	}
	write := func(name string, list []safetensorstest.Tensor) string {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := safetensorstest.Write(path, list, nil); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	others := append(named("model.diffusion_model."), imageTensor("model_ema.decay", safetensors.F32),
		imageTensor("first_stage_model.encoder.conv_in.weight", safetensors.F16, 4, 4))
	inputs := map[string]string{
		"all in one":       write("all.safetensors", others),
		"net.":             write("net.safetensors", named("net.")),
		"diffusion_model.": write("dm.safetensors", named("diffusion_model.")),
		"model.":           write("model.safetensors", named("model.")),
	}
	half := len(list) / 2
	const one = "diffusion_pytorch_model-00001-of-00002.safetensors"
	const two = "diffusion_pytorch_model-00002-of-00002.safetensors"
	write("pipeline/transformer/"+one, list[:half])
	write("pipeline/transformer/"+two, list[half:])
	write("pipeline/transformer/diffusion_pytorch_model.fp16.safetensors", list[:1])
	index := map[string]string{}
	for i, x := range list {
		index[x.Name] = one
		if i >= half {
			index[x.Name] = two
		}
	}
	if err := safetensorstest.WriteIndex(filepath.Join(dir, "pipeline", "transformer",
		"diffusion_pytorch_model.safetensors.index.json"), index); err != nil {
		t.Fatal(err)
	}
	text("pipeline/model_index.json", `{"_class_name": "FluxPipeline"}`)
	text("pipeline/transformer/config.json", `{"_class_name": "FluxTransformer2DModel"}`)
	inputs["pipeline"], inputs["folder"] = filepath.Join(dir, "pipeline"), filepath.Join(dir, "pipeline/transformer")
	write("variant/diffusion_pytorch_model.bf16.safetensors", list)
	text("variant/config.json", `{"_class_name": "FluxTransformer2DModel"}`)
	inputs["variant"] = filepath.Join(dir, "variant")
	var pickled []torchfiletest.Tensor
	for _, x := range list {
		pickled = append(pickled, torchfiletest.Tensor{Name: x.Name, DType: x.DType, Shape: x.Shape, Data: x.Data})
	}
	text("model.ckpt", string(torchfiletest.Encode(pickled)))
	inputs["torch.save"] = filepath.Join(dir, "model.ckpt")
	for name, path := range inputs {
		job, out := writeImage(t, path, Options{})
		got, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s: another file", name)
		}
		if has := len(job.Warnings) == 2; has != (name == "all in one") {
			t.Errorf("%s: %q", name, job.Warnings)
		}
	}
}

// TestImageRefused has checkpoints and options that are errors.
func TestImageRefused(t *testing.T) {
	long := strings.Repeat("n", 128)
	for _, c := range []struct {
		list []safetensorstest.Tensor
		opt  Options
		kind error
		part string
	}{
		{fluxWith(imageTensor(long, safetensors.BF16, 4)), Options{}, fault.Unsupported, "(128 bytes)"},
		{fluxWith(imageTensor("t", safetensors.BF16, 1, 2, 1, 2, 2)), Options{}, fault.Unsupported,
			"at most 4 dimensions for flux"},
		{fluxWith(imageTensor("single_transformer_blocks.0.attn.norm_k.weight", safetensors.BF16, 4)), Options{},
			fault.Unsupported, "diffusers"},
		{[]safetensorstest.Tensor{imageTensor("lm_head.weight", safetensors.BF16, 4, 4)}, Options{}, fault.Unsupported,
			"no known image or video model"},
		{fluxWith(), Options{Type: Q8_0}, fault.Usage, "ggquant"},
		{fluxWith(), Options{ConfigOnly: true}, fault.Usage, "no place for a configuration"},
		{fluxWith(), Options{MMProj: true}, fault.Usage, "no place for vision"},
		{fluxWith(), Options{Merge: []Merge{{Dir: "x"}}}, fault.Usage, "no place for adapters"},
	} {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		if err := safetensorstest.Write(path, c.list, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := Prepare(t.Context(), path, c.opt); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%q: %v", c.part, err)
		}
	}
}
