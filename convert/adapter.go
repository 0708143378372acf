package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"ggforge/arch"
	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/checkpoint"
	"ggforge/checkpoint/precision"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// Keys and suffixes of tensor names of adapter files.
const (
	keyLoraAlpha   = "adapter.lora.alpha"
	keyInvocations = "adapter.alora.invocation_tokens"
	suffixA        = ".lora_a"
	suffixB        = ".lora_b"
)

// adapterTypes are the output types that adapters may have.
var adapterTypes = []OutType{Auto, F32, F16, BF16, Q8_0}

// prepareAdapter plans the conversion of an adapter: each pair is mapped by the row of its weight.
func (j *Job) prepareAdapter(ctx context.Context) error {
	opt := j.options
	if opt.VocabOnly || opt.ConfigOnly || opt.Split != (Split{}) || opt.FuseQKV || opt.FuseGateUp || opt.Dense ||
		opt.Mistral || opt.EmbedTokenizer || opt.Pre != "" ||
		opt.NextN != config.WithNextN || opt.DSpark || opt.MMProj || len(opt.Merge) > 0 {
		return fault.Errorf(fault.Usage,
			"is a LoRA adapter: options about vocabularies, layers, the mmproj file, shards and other adapters are for models")
	}
	switch {
	case !slices.Contains(adapterTypes, opt.Type):
		return fault.Errorf(fault.Usage, "is a LoRA adapter: output type %v, want one of f32, f16, bf16, q8_0, auto",
			opt.Type)
	case opt.Type == Auto && !opt.OwnType:
		j.Type = F32
	}
	l, err := readLora(j.in.files)
	if err != nil {
		return err
	}
	j.in.stores = append(j.in.stores, l.store)
	cfg, err := j.openBase(ctx, l)
	if err != nil {
		return err
	}
	if j.Type == Auto {
		j.Type = j.guess(nil)
	}
	if err := j.planAdapter(ctx, l, cfg); err != nil {
		return err
	}
	if err := j.loadGeneral(); err != nil {
		return err
	}
	j.metadata.Set(gguf.KeyArchitecture, gguf.String(j.Arch.Name))
	early, err := j.Arch.Constants(cfg)
	if err != nil {
		return err
	}
	for _, kv := range early {
		j.metadata.Set(kv.Key, kv.Value)
	}
	for _, kv := range j.general.KVs(j.counts()) {
		j.metadata.Set(kv.Key, kv.Value)
	}
	alpha := l.fileAlpha()
	if opt.Reference {
		alpha = l.alpha
	}
	j.metadata.Set(keyLoraAlpha, gguf.Float32(float32(alpha)))
	if len(l.invocations) > 0 {
		var ids []gguf.Value
		for _, n := range l.invocations {
			ids = append(ids, gguf.Uint32(uint32(n)))
		}
		j.metadata.Set(keyInvocations, gguf.Array(gguf.Uint32Type, ids...))
	}
	j.metadata.Set(gguf.KeyQuantizationVersion, gguf.Uint32(gguf.QuantizationVersion))
	return nil
}

// openBase reads the configuration of the adapter's base model.
func (j *Job) openBase(ctx context.Context, l *lora) (*config.View, error) {
	opt := j.options
	dir, err := opt.baseOf(l, "")
	if err != nil {
		return nil, err
	}
	if j.in.base, err = open(ctx, dir, checkpoint.Options{OutsideLinks: opt.OutsideLinks,
		Remote: opt.Remote}); err != nil {
		return nil, err
	}
	if _, err := j.in.base.Stat(hadamardFile); err == nil {
		return nil, fault.Errorf(fault.Unsupported,
			"the base model, %s: %s: adapters of models whose weights are folded with Hadamard matrices are not converted", dir, hadamardFile)
	}
	cfg, err := arch.LoadConfigAs(opt.Class, j.in.base)
	if err != nil {
		return nil, fmt.Errorf("the base model, %s: %w", dir, err)
	}
	view := cfg.View(config.Options{Reference: opt.Reference})
	if j.Arch, err = arch.For(view); err != nil {
		return nil, fmt.Errorf("the base model, %s: %w", dir, err)
	}
	target, err := j.openTarget(ctx)
	if err != nil {
		return nil, err
	}
	// adapters have no metadata made from integer tensors, and the sizes of config.json suffice to check the pairs
	known := config.Facts{Dir: j.name(), Target: target, Integers: map[string][]int64{}}
	return view.Gather(j.in.base, known, j.Arch.Sources())
}

// baseOf returns the directory of an adapter's base model, or its address. revision is the hub's revision, "" for any.
func (opt Options) baseOf(l *lora, revision string) (string, error) {
	id := opt.BaseID
	switch {
	case opt.Base != "":
		return opt.Base, nil
	case id == "" && l.base == "":
		return "", fault.Errorf(fault.Usage, "%s names no base model: give its folder or id", checkpoint.AdapterConfig)
	case id == "":
		id = l.base
	}
	dir, err := checkpoint.HubSnapshot(opt.HubCache, id, revision)
	switch {
	case err == nil:
		return dir, nil
	case !errors.Is(err, fs.ErrNotExist) && opt.BaseID != "":
		return "", err
	case opt.BaseID != "":
		if revision != "" && !strings.Contains(id, "@") {
			id += "@" + revision
		}
		return checkpoint.HubAddress(id), nil // requested by the user
	}
	return "", fault.Errorf(fault.Usage, "the base model, %q by %s, is not in the hub's cache: give its folder or id",
		l.base,
		checkpoint.AdapterConfig)
}

// planAdapter maps the tensors of an adapter: replaced norms first, then the pairs.
func (j *Job) planAdapter(ctx context.Context, l *lora, cfg *config.View) error {
	var names []string
	for _, t := range l.whole {
		names = append(names, t.Name)
	}
	for _, p := range l.pairs {
		names = append(names, p.name)
	}
	layout, err := j.Arch.Layout(cfg, names)
	if err != nil {
		return err
	}
	lost := slices.Concat(layout.Unmapped, layout.ExtraExperts)
	used := map[int]bool{}
	for _, o := range layout.Outputs {
		for _, i := range o.From {
			used[i] = true
		}
	}
	for i, name := range names {
		if !used[i] && !slices.Contains(lost, name) {
			lost = append(lost, name)
		}
	}
	if len(lost) > 0 {
		return fault.Errorf(fault.Unsupported,
			"%d weights of the adapter have no place in a file of architecture %s:%s", len(lost), j.Arch.Name,
			fault.Lines(lost))
	}
	var shapes []shape.Tensor
	for i := range layout.Outputs {
		if err := ctx.Err(); err != nil {
			return err
		}
		made, err := j.buildAdapter(l, &layout.Outputs[i], names)
		if err != nil {
			return err
		}
		shapes = append(shapes, made...)
	}
	if len(l.whole) > 0 {
		j.warnf("%d whole norms are in the file, such as %q: programs leave them out", len(l.whole), l.whole[0].Name)
	}
	if l.embeds() && cfg.Given("tie_word_embeddings") == true {
		j.warnf("the adapter changes the token embedding, which is the output matrix, too: programs change the embedding only")
	}
	early, kvs, err := j.Arch.KVs(cfg, j.row().fileType)
	var required []string
	if err == nil {
		required, err = j.Arch.Required(cfg)
	}
	if err != nil {
		return fmt.Errorf("the base model: %w", err)
	}
	for _, name := range required {
		if !slices.ContainsFunc(shapes, func(t shape.Tensor) bool { return t.Name == name }) {
			shapes = append(shapes, shape.Tensor{Name: name})
		}
	}
	if err := j.Arch.CheckSomeShapes(cfg, slices.Concat(early, kvs), shapes); err != nil {
		return fmt.Errorf("the adapter does not fit the base model: %w", err)
	}
	return j.types()
}

func (l *lora) embeds() bool {
	return slices.ContainsFunc(l.pairs, func(p loraPair) bool { return p.embedding })
}

// buildAdapter adds the tensors of one output of the layout to the plan, and returns the model's tensors that they
// belong to, if their dimensions are known.
func (j *Job) buildAdapter(l *lora, o *table.Output, names []string) (made []shape.Tensor, err error) {
	switch o.Row.Kind.(type) {
	case *table.Meta, table.Integers, table.Zero:
		return nil, fault.Errorf(fault.Unsupported, "%q is no tensor of a file of architecture %s",
			names[max(o.From[0], 0)], j.Arch.Name)
	}
	var sources []rows.Source
	first := -1
	for _, i := range o.From {
		if first < 0 {
			first = i
		}
		if i < 0 {
			continue
		}
		if i < len(l.whole) {
			t := l.whole[i]
			w := precision.Weight{Name: t.Name, Tensors: []*precision.Tensor{t}}
			src, err := source(&w, gguf.TypeF32)
			if err != nil {
				return nil, err
			}
			sources = append(sources, src)
			continue
		}
		p := l.pairs[i-len(l.whole)]
		f, err := p.factors()
		if err != nil {
			return nil, err
		}
		if c := l.share(p, f.Rank()); c != 1 && !j.options.Reference {
			if l.alpha == 0 {
				return nil, fault.Errorf(fault.Unsupported,
					"%s: \"lora_alpha\" is 0, which no pattern can change in a file", checkpoint.AdapterConfig)
			}
			f.B = rows.Map(rows.Convert(f.B, gguf.TypeF32), rows.Scale(float32(c)))
		}
		sources = append(sources, f)
	}
	if len(sources) < len(o.From) {
		return nil, fault.Errorf(fault.Unsupported,
			"%q becomes a part of one tensor, and the adapter has no pairs for the other parts", names[first])
	}
	row := *o.Row
	exchanged := row.Transform == parts.Transpose && j.options.Reference
	if row.Transform == parts.Transpose && !exchanged {
		row.Transform = nil // the weight is stored transposed, its pair is not
	}
	build := *o
	build.Row = &row
	results, err := build.Build(sources)
	if err != nil {
		return nil, fmt.Errorf("the pair of %q: %w", names[first], err)
	}
	for _, r := range results {
		f, ok := r.Source.(*rows.Factors)
		switch {
		case first < len(l.whole) || !ok && len(r.Source.NE()) == 1 && strings.HasSuffix(r.Name, "_norm.weight"):
			// an output next to the weight, which the pair does not change
			j.Plan = append(j.Plan, Tensor{Name: r.Name, From: names[first], Source: r.Source, Type: gguf.TypeF32})
			continue
		case !ok:
			return nil, fault.Errorf(fault.Unsupported,
				"the pair of %q cannot follow what becomes of the weight in a file of architecture %s (%s)",
				names[first], j.Arch.Name, row.TransformNames())
		}
		a, b := f.A, f.B
		embedding := l.pairs[first-len(l.whole)].embedding
		if isEmbedding := r.Name == "token_embd.weight"; isEmbedding != embedding {
			return nil, fault.Errorf(fault.Unsupported,
				"the pair of %q becomes that of %q: only token embeddings have pairs of their kind",
				names[first], r.Name)
		}
		if embedding {
			if a, err = rows.Transpose(a); err != nil {
				return nil, err
			}
		} else if rule, _, _ := j.Arch.Shapes.Rule(r.Name); !exchanged && !strings.Contains(rule, "n_vocab") {
			// the vocabulary is not read
			made = append(made, shape.Tensor{Name: r.Name, From: names[first], NE: f.NE()})
		}
		if extra := len(f.NE()) - len(a.NE()); extra > 0 { // all matrices of a stack share it
			if a, err = rows.Reshape(a, append(slices.Clone(a.NE()), slices.Repeat([]int64{1}, extra)...)); err != nil {
				return nil, err
			}
		}
		for _, side := range []struct {
			suffix string
			src    rows.Source
		}{{suffixA, a}, {suffixB, b}} {
			j.Plan = append(j.Plan, Tensor{Name: r.Name + side.suffix, From: names[first], Source: side.src,
				Type: j.Type.row().tensor})
		}
	}
	return made, nil
}

// adapterElements returns the number of elements of the pairs' products and of the other tensors.
func adapterElements(plan []Tensor) (n int64) {
	for i, t := range plan {
		ne := t.Source.NE()
		switch {
		case strings.HasSuffix(t.Name, suffixA):
			continue
		case strings.HasSuffix(t.Name, suffixB):
			ne = slices.Clone(ne)
			ne[0] = plan[i-1].Source.NE()[0]
		}
		n += gguf.Rows(ne) * gguf.RowLen(ne)
	}
	return n
}
