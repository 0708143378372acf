package convert

import (
	"context"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/diffusion"
	"ggforge/checkpoint"
	"ggforge/checkpoint/precision"
	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
	"ggforge/model/limits"
	"ggforge/rows"
)

// Rules of the converter of image and video models, see package diffusion: tensors of at most smallest elements are F32,
// and where an architecture reshapes, tensors of at least leastReshaped elements get rows of reshapedRow.
const (
	smallest      = 1024
	leastReshaped = 512
	reshapedRow   = 256
)

// shapeKey is the beginning of the keys with the shapes of reshaped tensors.
const shapeKey = "comfy.gguf.orig_shape."

// imageInput is where the weights of an image or video model are.
type imageInput struct {
	file     string            // in the directory; "" for a folder of the diffusers library
	folder   string            // "." for the directory itself, else one of a pipeline
	metadata map[string]string // of the file
	// stored has the checkpoint's tensors by those that are named for the file.
	stored map[*precision.Tensor]*precision.Tensor
}

// findImage returns where the weights of an image model are if the directory has one, by the files of the diffusers
// library.
func findImage(files *checkpoint.Dir) (*imageInput, error) {
	if _, err := files.Stat(checkpoint.PipelineFile); err == nil {
		for _, folder := range checkpoint.PipelineFolders {
			if _, err := files.Stat(path.Join(folder, config.ConfigFile)); err == nil {
				return &imageInput{folder: folder}, nil
			}
		}
		return nil, fault.Errorf(fault.Unsupported, "%s: is there, but no %s with a diffusion model",
			checkpoint.PipelineFile, strings.Join(checkpoint.PipelineFolders, " or "))
	}
	data, err := files.ReadFile(config.ConfigFile)
	if err != nil {
		return nil, nil // its reader reports errors
	}
	v, _ := pyjson.Parse(data)
	o, _ := v.(*pyjson.Object)
	if _, ok := o.Get("_class_name").(string); ok && o.Get("model_type") == nil && o.Get("architectures") == nil {
		return &imageInput{folder: "."}, nil
	}
	return nil, nil
}

// checkImage refuses options that image models have no place for.
func (o Options) checkImage() error {
	for _, r := range []struct {
		set  bool
		what string
	}{
		{o.Class != "", "a class"}, {o.ConfigOnly, "a configuration"},
		{o.Pre != "" || o.EmbedTokenizer || o.VocabOnly, "a tokenizer"}, {o.Override != "", "general.* keys"},
		{o.FuseQKV || o.FuseGateUp, "fused tensors"}, {o.Dense, "dense modules"},
		{o.NextN != config.WithNextN || o.DSpark || o.Target != "", "drafts"},
		{o.MMProj, "vision or audio encoders"}, {o.Mistral, "Mistral's own format"},
		{o.Base != "" || o.BaseID != "" || len(o.Merge) > 0, "adapters"},
	} {
		if r.set {
			return fault.Errorf(fault.Usage, "is an image or video model, which has no place for %s", r.what)
		}
	}
	if o.Type.row().tensor.BlockLen() > 1 || o.Float8AsQ8 {
		return fault.Errorf(fault.Usage,
			"is an image or video model: want output type auto, f32, f16 or bf16; ggquant makes quantized ones")
	}
	return nil
}

// prepareImage plans the conversion of an image or video model.
func (j *Job) prepareImage(ctx context.Context) error {
	if err := j.options.checkImage(); err != nil {
		return err
	}
	stored, err := j.openImage()
	if err != nil {
		return err
	}
	own := j.ownTensors(stored)
	names := make([]string, len(own))
	for i, t := range own {
		names[i] = t.Name
	}
	layout := diffusion.DetectLayout(names)
	if layout == nil {
		if j.Image, err = diffusion.Detect(names); err != nil {
			return err
		}
	}
	weights, left, err := precision.Weights(own, config.Object{})
	if err != nil {
		return err
	}
	if len(left) > 0 {
		j.warnf("%d tensors left out: scales of activations and marks of quantization, such as %q", len(left),
			left[0].Name)
	}
	tensors, err := j.imageTensors(layout, weights)
	if err != nil {
		return err
	}
	if err := j.checkImageNames(tensors); err != nil {
		return err
	}
	if j.Type == Auto {
		j.Type = mostStored(tensors)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	j.metadata.Set(gguf.KeyArchitecture, gguf.String(j.Image.Name))
	j.metadata.Set(gguf.KeyQuantizationVersion, gguf.Uint32(gguf.QuantizationVersion))
	j.metadata.Set(gguf.KeyFileType, gguf.Uint32(j.Type.row().fileType))
	if j.options.ModelName != "" {
		j.metadata.Set("general.name", gguf.String(j.options.ModelName))
	}
	if j.Image.Config {
		if err := j.setConfig(names); err != nil {
			return err
		}
	}
	if err := j.planImage(tensors); err != nil {
		return err
	}
	j.expectReads()
	return nil
}

// openImage opens the weights and returns the stored tensors.
func (j *Job) openImage() ([]*precision.Tensor, error) {
	in := j.in.image
	var store checkpoint.Store
	var err error
	if in.file != "" {
		var left []string
		if store, left, err = j.in.files.StateDict(in.file); len(left) > 0 {
			j.warnf("%d tensors left out: not of the state dict, such as %q", len(left), left[0])
		}
	} else {
		store, err = j.in.files.Diffusers(in.folder)
	}
	if err != nil {
		return nil, err
	}
	j.in.stores = append(j.in.stores, store)
	if in.folder != "." && in.folder != "" {
		if _, err := j.in.files.Stat(path.Join(in.folder+"_2", config.ConfigFile)); err == nil {
			j.warnf("%s_2 is a second model of the pipeline, which this file does not have: convert it on its own",
				in.folder)
		}
	}
	in.metadata = checkpoint.Metadata(store)
	return addMarks(store.Tensors(), in.metadata)
}

// configKey is the key, and the metadata of safetensors files, with the settings of a model's parts.
const configKey = "config"

// setConfig writes the settings that the checkpoint has in its metadata: loaders give them to ComfyUI, which takes those
// of LTX-2's transformer from there and cannot tell them by the shapes.
func (j *Job) setConfig(names []string) error {
	text, ok := j.in.image.metadata[configKey]
	if !ok {
		if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "audio_") }) {
			j.warnf("the metadata of the checkpoint have no %q, which ComfyUI needs for this model (LTX-2): take the file of "+
				"its publisher", configKey)
		}
		return nil
	}
	v, err := pyjson.Parse([]byte(text))
	if _, ok := v.(*pyjson.Object); err == nil && !ok {
		err = fmt.Errorf("want an object, found %s", pyjson.Describe(v))
	}
	if err != nil {
		return fault.Errorf(fault.Broken, "%s: metadata %s: %w", j.in.image.file, configKey, err)
	}
	j.metadata.Set(configKey, gguf.String(text))
	return nil
}

// ownTensors returns the tensors of the diffusion model, by their names without the checkpoint's prefix.
func (j *Job) ownTensors(stored []*precision.Tensor) []*precision.Tensor {
	names := make([]string, len(stored))
	for i, t := range stored {
		names[i] = t.Name
	}
	prefix := diffusion.Prefix(names)
	var own []*precision.Tensor
	var averages, others []string
	j.in.image.stored = map[*precision.Tensor]*precision.Tensor{}
	for _, t := range stored {
		name, ok := diffusion.Strip(t.Name, prefix)
		switch {
		case ok:
			named := *t
			named.Name = name
			own = append(own, &named)
			j.in.image.stored[&named] = t
		case strings.HasPrefix(t.Name, diffusion.AveragesPrefix):
			averages = append(averages, t.Name)
		default:
			others = append(others, t.Name)
		}
	}
	if len(averages) > 0 {
		j.warnf("%d tensors left out: averages of weights during training (EMA), such as %q", len(averages), averages[0])
	}
	if len(others) > 0 {
		j.warnf("%d tensors left out: other parts of the checkpoint (autoencoder, text encoders, schedule), such as %q",
			len(others), others[0])
	}
	return own
}

// checkImageNames refuses names and dimensions beyond the limits of the architecture, and warns of those that ggml does
// not read.
func (j *Job) checkImageNames(tensors []assembled) error {
	most := gguf.LimitsOf(j.Image.Name)
	var beyond []string
	for i := range tensors {
		t := &tensors[i]
		switch shape := t.shape(); {
		case len(t.name) > most.Name:
			beyond = append(beyond, fmt.Sprintf("%q (%d bytes)", t.name, len(t.name)))
		case len(shape) > most.Dims, len(shape) > gguf.MaxDims && !j.Image.FiveDims:
			return fault.Errorf(fault.Unsupported, "%s: tensor %q: shape %v, want at most %d dimensions for %s",
				t.first().File, t.first().Name, shape, gguf.MaxDims, j.Image.Name)
		}
	}
	if len(beyond) > 0 {
		return fault.Errorf(fault.Unsupported, "names of tensors have at most %d bytes:%s", most.Name,
			fault.Lines(beyond))
	}
	if j.options.Split != (Split{}) {
		j.warnf("programs that load image and video models take one file, not shards: ggtool merge joins them")
	}
	shapes := func(yield func(string, []int64) bool) {
		for i := range tensors {
			ne := tensors[i].shape()
			slices.Reverse(ne)
			if !yield(tensors[i].name, ne) {
				return
			}
		}
	}
	for _, text := range limits.Unread(shapes) {
		j.warnf("%s", text)
	}
	return nil
}

// mostStored returns the output type for Auto: BF16 if no other type has more of the stored tensors, else F16.
func mostStored(tensors []assembled) OutType {
	counts := map[safetensors.DType]int{}
	for i := range tensors {
		counts[tensors[i].first().DType]++
	}
	for _, n := range counts {
		if n > counts[safetensors.BF16] {
			return F16
		}
	}
	return BF16
}

// planImage plans the tensors: in the order of the checkpoint, those of five dimensions after their biases, as the
// field's tool for them places them.
func (j *Job) planImage(tensors []assembled) error {
	m := j.Image
	var order, five []*assembled
	ignored, empty := 0, 0
	for i := range tensors {
		t := &tensors[i]
		switch shape := t.shape(); {
		case m.Ignored.Match(t.name):
			ignored++
		case slices.Contains(shape, 0):
			empty++
		case len(shape) > gguf.MaxDims:
			five = append(five, t)
		default:
			order = append(order, t)
		}
	}
	if ignored > 0 {
		j.warnf("%d tensors left out: states and counters of the training", ignored)
	}
	if empty > 0 {
		j.warnf("%d tensors left out: without elements", empty)
	}
	for _, t := range order {
		if err := j.planTensor(t); err != nil {
			return err
		}
		weight := strings.ReplaceAll(t.name, ".bias", ".weight")
		if i := slices.IndexFunc(five, func(t *assembled) bool { return t.name == weight }); i >= 0 {
			if err := j.planTensor(five[i]); err != nil {
				return err
			}
			five = slices.Delete(five, i, i+1)
		}
	}
	slices.SortFunc(five, func(a, b *assembled) int { return strings.Compare(a.name, b.name) })
	for _, t := range five {
		if err := j.planTensor(t); err != nil {
			return err
		}
	}
	return nil
}

// planTensor adds a tensor to the plan.
func (j *Job) planTensor(t *assembled) error {
	m, first := j.Image, t.first()
	typ := j.imageType(t)
	src, err := j.imageRows(t, typ)
	if err != nil {
		return err
	}
	ne := src.NE()
	if n := gguf.RowLen(ne) * gguf.Rows(ne); m.Reshape && len(ne) > 1 && n >= leastReshaped && n%reshapedRow == 0 &&
		ne[0]%reshapedRow != 0 {
		var shape []int32
		for _, d := range slices.Backward(ne) {
			if d > math.MaxInt32 {
				return fault.Errorf(fault.Unsupported, "%s: tensor %q: shape %v, want at most %d in each dimension",
					first.File, first.Name, first.Shape, math.MaxInt32)
			}
			shape = append(shape, int32(d))
		}
		j.metadata.Set(shapeKey+t.name, gguf.Int32s(shape))
		if src, err = rows.Reshape(src, []int64{reshapedRow, n / reshapedRow}); err != nil {
			return fmt.Errorf("%s: tensor %q: %w", first.File, first.Name, err)
		}
	}
	var from []string
	for _, w := range t.parts {
		from = append(from, w.First().Name)
		for _, part := range w.Tensors {
			if part != nil {
				j.reads = append(j.reads, j.in.image.stored[part])
			}
		}
	}
	j.Plan = append(j.Plan, Tensor{Name: t.name, From: strings.Join(from, ", "), Type: typ, Source: src})
	return nil
}

// imageType returns the type of a tensor in the file.
//
//	                                     auto                          f16   bf16  f32
//	five dimensions                      F32                           F32   F32   F32
//	vectors, small ones, m.F32           F32 if stored as F32 or BF16  same  F32   F32
//	others                               BF16 if stored so, else F16   F16   BF16  F32
func (j *Job) imageType(t *assembled) gguf.Type {
	shape, elements := t.shape(), int64(1)
	for _, d := range shape {
		elements *= d
	}
	stored := func(d safetensors.DType) bool { return t.parts[0].Scheme() == "" && t.first().DType == d }
	small := len(shape) == 1 || elements <= smallest || j.Image.F32.Match(t.name)
	precise := stored(safetensors.F32) || stored(safetensors.BF16) || j.options.Type == BF16
	switch {
	case len(shape) > gguf.MaxDims, small && precise:
		return gguf.TypeF32
	case j.options.Type != Auto:
		return j.Type.row().tensor
	case stored(safetensors.BF16):
		return gguf.TypeBF16
	}
	return gguf.TypeF16
}

// imageOutput is Output for an image model: NAME-BF16.gguf next to the checkpoint's file or in its folder, or in the
// directory out; for a model on a server in the current directory.
func (j *Job) imageOutput(out string) (string, error) {
	name := gguf.SafeName(j.imageName(), "-"+j.Label()+".gguf")
	if out == "" {
		switch {
		case j.remote():
			out = "."
		case j.in.image.file != "":
			out = filepath.Dir(j.Dir)
		default:
			out = j.Dir
		}
	}
	if st, err := os.Stat(out); err == nil && st.IsDir() {
		return filepath.Join(out, name), nil
	}
	name, err := fillTemplate(filepath.Base(out), j.Label())
	return filepath.Join(filepath.Dir(out), name), err
}

// imageName returns the name of the model by its file or folder.
func (j *Job) imageName() string {
	if file := j.in.image.file; file != "" {
		return strings.TrimSuffix(path.Base(file), path.Ext(file))
	}
	_, name := j.in.files.Name()
	return name
}

// Architecture returns general.architecture of the file.
func (j *Job) Architecture() string {
	if j.Image != nil {
		return j.Image.Name
	}
	return j.Arch.Name
}
