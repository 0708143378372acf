package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/checkpoint"
	"ggforge/checkpoint/precision"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
	"ggforge/rows"
)

// lora is an adapter of the PEFT library: pairs of matrices A and B; B·A times a scale is added to the pair's weight.
// Source of the names and of the scale: tuners/lora of PEFT 0.18, and convert_lora_to_gguf.py of llama.cpp.
type lora struct {
	files *checkpoint.Dir
	store checkpoint.Store

	base        string  // ID of the base model, "" if the file has none
	alpha       float64 // of pairs that no pattern matches
	rank        int64   // as configured; pairs may have others
	stabilized  bool    // the scale is alpha/sqrt(rank) instead of alpha/rank
	patterns    []alphaPattern
	invocations []int64 // token IDs that activate it, nil for an adapter that is always active

	whole []*precision.Tensor // norms that replace the model's, with the model's names
	pairs []loraPair          // in the order of their first matrices
}

// alphaPattern is the alpha of modules whose names match.
type alphaPattern struct {
	module *regexp.Regexp
	alpha  float64
}

// loraPair has the matrices A and B of one weight.
type loraPair struct {
	name      string // of the weight
	a, b      *precision.Tensor
	embedding bool // of a token embedding: the product is its transpose
}

// maxAlpha bounds the numbers of adapter_config.json.
const maxAlpha = 1 << 30

// loraSides are the suffixes of the names of pairs.
var loraSides = []struct {
	suffix       string
	b, embedding bool
}{
	{".lora_A.weight", false, false}, {".lora_B.weight", true, false},
	{".lora_embedding_A", false, true}, {".lora_embedding_B", true, true},
}

// refusedAdapters are settings that change the arithmetic, with the values of a plain LoRA, as text.
var refusedAdapters = []struct{ key, plain, what string }{
	{"use_dora", "false", "magnitudes of DoRA"},
	{"lora_bias", "false", "biases of its own"},
	{"use_qalora", "false", "grouped columns of QA-LoRA"},
	{"layer_replication", "", "layers that are repeated"},
	{"trainable_token_indices", "", "tokens of its own"},
	{"megatron_config", "", "weights in parts of Megatron"},
}

// openLora reads the adapter in a directory. The caller closes it.
func openLora(ctx context.Context, dir string, opt checkpoint.Options) (*lora, error) {
	files, err := open(ctx, dir, opt)
	if err != nil {
		return nil, err
	}
	l, err := readLora(files)
	if err != nil {
		files.Close()
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return l, nil
}

// readLora reads the adapter in files, which Close closes, too.
func readLora(files *checkpoint.Dir) (*lora, error) {
	l := &lora{files: files}
	data, err := config.ReadConfig(files, checkpoint.AdapterConfig)
	if err != nil {
		return nil, err
	}
	if err := l.configure(data); err != nil {
		return nil, err
	}
	if l.store, err = files.AdapterWeights(); err != nil {
		return nil, err
	}
	if err := l.match(l.store.Tensors()); err != nil {
		l.store.Close()
		return nil, err
	}
	return l, nil
}

func (l *lora) Close() error { return errors.Join(l.store.Close(), l.files.Close()) }

// configure reads the text of adapter_config.json.
func (l *lora) configure(data []byte) error {
	o, err := config.ParseObject(checkpoint.AdapterConfig, data)
	if err != nil {
		return err
	}
	if kind, ok, err := o.String("peft_type"); err != nil {
		return err
	} else if ok && kind != "LORA" {
		return fault.Errorf(fault.Unsupported, "%s: is an adapter of type %q, want LORA",
			checkpoint.AdapterConfig, kind)
	}
	for _, r := range refusedAdapters {
		if v := o.Value(r.key); v != nil && fmt.Sprint(v) != r.plain {
			return fault.Errorf(fault.Unsupported, "%s: key %q: adapters with %s are not converted",
				checkpoint.AdapterConfig, r.key, r.what)
		}
	}
	if l.base, _, err = o.String("base_model_name_or_path"); err != nil {
		return err
	}
	if l.alpha, err = o.RequireFloat("lora_alpha"); err != nil {
		return err
	}
	if l.rank, _, err = o.Int("r"); err != nil {
		return err
	}
	if l.stabilized, _, err = o.Bool("use_rslora"); err != nil {
		return err
	}
	if l.invocations, _, err = o.Ints("alora_invocation_tokens"); err != nil {
		return err
	}
	for _, n := range l.invocations {
		if n < 0 || n > math.MaxUint32 {
			return fault.Errorf(fault.Broken, "%s: key \"alora_invocation_tokens\": %d is no token",
				checkpoint.AdapterConfig, n)
		}
	}
	if err := l.checkAlpha("lora_alpha", l.alpha); err != nil {
		return err
	}
	return l.readPatterns(data)
}

func (l *lora) checkAlpha(key string, alpha float64) error {
	if math.IsNaN(alpha) || math.Abs(alpha) > maxAlpha {
		return fault.Errorf(fault.Broken, "%s: key %q: want a number of at most %d, found %v", checkpoint.AdapterConfig,
			key, maxAlpha, alpha)
	}
	return nil
}

// readPatterns reads alpha_pattern in its order: the first match applies.
func (l *lora) readPatterns(data []byte) error {
	v, err := pyjson.Parse(data)
	if err != nil {
		return err
	}
	root, _ := v.(*pyjson.Object)
	patterns, _ := root.Get("alpha_pattern").(*pyjson.Object)
	if patterns.Empty() {
		return nil
	}
	values, ok := config.ObjectIn("alpha_pattern", patterns.Map())
	if !ok {
		return nil
	}
	for _, key := range patterns.Names {
		alpha, err := values.RequireFloat(key)
		if err == nil {
			err = l.checkAlpha("alpha_pattern."+key, alpha)
		}
		if err != nil {
			return err
		}
		module, err := regexp.Compile(`^(?:.*\.)?(?:` + key + `)$`)
		if err != nil {
			return fault.Errorf(fault.Unsupported,
				"%s: key \"alpha_pattern\": %q is not a regular expression that is known: %w",
				checkpoint.AdapterConfig, key, err)
		}
		l.patterns = append(l.patterns, alphaPattern{module, alpha})
	}
	return nil
}

// match finds the pairs among the tensors.
func (l *lora) match(tensors []*precision.Tensor) error {
	at := map[string]int{}
	for _, t := range tensors {
		name := strings.ReplaceAll(t.Name, "base_model.model.", "")
		i := slices.IndexFunc(loraSides, func(s struct {
			suffix       string
			b, embedding bool
		}) bool {
			return strings.HasSuffix(name, s.suffix)
		})
		if i < 0 {
			switch {
			case strings.Contains(name, ".base_layer.weight"): // the model's own
			case strings.HasSuffix(name, ".weight") && (strings.Contains(name, "_layernorm") ||
				strings.Contains(name, ".norm")) && !strings.Contains(name, ".lora_"):
				whole := *t
				whole.Name = name
				l.whole = append(l.whole, &whole)
			default:
				return fault.Errorf(fault.Unsupported,
					"%s: tensor %q is %s: only pairs lora_A and lora_B, and norms, are converted", t.File, t.Name,
					strange(name))
			}
			continue
		}
		side := loraSides[i]
		name = strings.TrimSuffix(name, side.suffix) + ".weight"
		j, ok := at[name]
		if !ok {
			j = len(l.pairs)
			at[name] = j
			l.pairs = append(l.pairs, loraPair{name: name, embedding: side.embedding})
		}
		p := &l.pairs[j]
		to := &p.a
		if side.b {
			to = &p.b
		}
		if *to != nil || p.embedding != side.embedding {
			return fault.Errorf(fault.Broken, "%s: tensors %q and %q are both for %q", t.File, cmp.Or(p.a, p.b).Name,
				t.Name, name)
		}
		*to = t
	}
	if len(l.pairs) == 0 {
		return fault.Errorf(fault.Broken, "has no pairs of matrices")
	}
	for _, p := range l.pairs {
		if p.a == nil || p.b == nil {
			return fault.Errorf(fault.Broken, "%s: tensor %q has no other side", cmp.Or(p.a, p.b).File,
				cmp.Or(p.a, p.b).Name)
		}
		if _, err := p.factors(); err != nil {
			return err
		}
	}
	return nil
}

// strange describes a tensor that is not converted, for messages.
func strange(name string) string {
	switch {
	case strings.Contains(name, ".lora_magnitude_vector"):
		return "a magnitude of DoRA"
	case strings.HasSuffix(name, ".bias"):
		return "a bias"
	case strings.Contains(name, ".lora_"):
		return "a part of an adapter that is not known"
	}
	return "a whole weight (modules_to_save)"
}

// factors returns A and B as factors of their product. Matrices of different types become F32, as in the reference.
func (p loraPair) factors() (*rows.Factors, error) {
	var sides []rows.Source
	for _, t := range []*precision.Tensor{p.a, p.b} {
		w := precision.Weight{Name: t.Name, Tensors: []*precision.Tensor{t}}
		src, err := source(&w, gguf.TypeF32)
		if err != nil {
			return nil, err
		}
		sides = append(sides, src)
	}
	if sides[0].Type() != sides[1].Type() {
		sides[0], sides[1] = rows.Convert(sides[0], gguf.TypeF32), rows.Convert(sides[1], gguf.TypeF32)
	}
	f, err := rows.NewFactors(sides[0], sides[1])
	if err != nil {
		return nil, fmt.Errorf("%s: tensors %q and %q: %w", p.a.File, p.a.Name, p.b.Name, err)
	}
	return f, nil
}

// fileAlpha is the alpha in the adapter's GGUF file; runtimes divide it by the rank of each pair.
func (l *lora) fileAlpha() float64 {
	if l.stabilized {
		return l.alpha * math.Sqrt(float64(max(l.rank, 1)))
	}
	return l.alpha
}

// alphaOf returns the alpha of a pair.
func (l *lora) alphaOf(p loraPair) float64 {
	module := strings.TrimSuffix(p.name, ".weight")
	for _, pattern := range l.patterns {
		if pattern.module.MatchString(module) {
			return pattern.alpha
		}
	}
	return l.alpha
}

// scale returns the factor of a pair's product.
func (l *lora) scale(p loraPair, rank int64) float64 {
	if l.stabilized {
		return l.alphaOf(p) / math.Sqrt(float64(rank))
	}
	return l.alphaOf(p) / float64(rank)
}

// share returns scale / (fileAlpha/rank), which is 1 except for pairs with another alpha or rank.
func (l *lora) share(p loraPair, rank int64) float64 {
	c := 1.0
	if alpha := l.alphaOf(p); alpha != l.alpha {
		c = alpha / l.alpha
	}
	if r := max(l.rank, 1); l.stabilized && rank != r {
		c *= math.Sqrt(float64(rank) / float64(r))
	}
	return c
}
