package arch

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ggforge/internal/fault"
	"ggforge/internal/torchmath"
	"ggforge/rows"
)

// TensorRow says what becomes of a tensor of the checkpoint, or of one tensor in
// each layer. In names {bid} stands for the layer's number.
type TensorRow struct {
	HF        string // name in the checkpoint without ".weight" or ".bias", or whole when the row drops it
	GGUF      string // name in the file without suffix; "" drops the tensor
	Transform *Transform
	Bias      bool // a ".bias" may stand beside the weight
	Optional  bool // the weight may be missing
}

// Transform is a rearrangement of a tensor on its way from the checkpoint to the
// file, and the way back. A row without one leaves the tensor as it is.
type Transform struct {
	Name    string
	Forward func(*Config, rows.Source) (rows.Source, error)
	Inverse func(*Keys, rows.Source) (rows.Source, error)
}

// ExtraTensor is a tensor that is computed from the config. They come before
// all others.
type ExtraTensor struct {
	GGUF string // whole name
	// Make returns the tensor, nil when the model has none.
	Make func(*Config) (rows.Source, error)
}

// Mapped is the destination of a tensor.
type Mapped struct {
	Row    *TensorRow // nil for an extra tensor
	Name   string     // in the file, or in the checkpoint on the way back; "" when the tensor is dropped
	Layer  int64      // -1 outside the layers
	IsBias bool
}

// Map finds the row of a tensor of the checkpoint; ok is false when there is
// none. blockCount is the number of layers.
func (a *Arch) Map(name string, blockCount int64) (m Mapped, ok bool) {
	for i := range a.Tensors {
		row := &a.Tensors[i]
		if m, ok := row.match(name, row.HF, row.GGUF); ok && m.Layer < blockCount {
			return m, true
		}
	}
	return Mapped{}, false
}

// Unmap is the inverse of Map: it finds the row of a tensor of the file. An
// extra tensor is dropped: whoever loads the checkpoint computes it.
func (a *Arch) Unmap(name string, blockCount int64) (m Mapped, ok bool) {
	for _, e := range a.Extra {
		if e.GGUF == name {
			return Mapped{Layer: -1}, true
		}
	}
	for i := range a.Tensors {
		row := &a.Tensors[i]
		if row.GGUF == "" {
			continue
		}
		if m, ok := row.match(name, row.GGUF, row.HF); ok && m.Layer < blockCount {
			return m, true
		}
	}
	return Mapped{}, false
}

// match finds the name on the other side of a tensor; from and to are the row's
// names on this side and on the other.
func (t *TensorRow) match(name, from, to string) (Mapped, bool) {
	m := Mapped{Row: t, Layer: -1}
	base, suffix := name, ""
	if t.GGUF != "" {
		switch {
		case strings.HasSuffix(name, ".weight"):
			suffix = ".weight"
		case strings.HasSuffix(name, ".bias") && t.Bias:
			suffix, m.IsBias = ".bias", true
		default:
			return m, false
		}
		base = strings.TrimSuffix(name, suffix)
	}
	before, after, layered := strings.Cut(from, "{bid}")
	if !layered {
		m.Name = to + suffix // both empty when the row drops the tensor
		return m, base == from
	}
	digits, found := strings.CutPrefix(base, before)
	if !found {
		return m, false
	}
	if digits, found = strings.CutSuffix(digits, after); !found {
		return m, false
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != digits {
		return m, false
	}
	m.Layer = int64(n)
	m.Name = strings.Replace(to, "{bid}", digits, 1) + suffix
	return m, true
}

// maxMissing bounds what a number of layers makes up: the number comes from a
// file.
const maxMissing = 10_000

// Missing returns the names, as in the checkpoint, of weights that a model of
// blockCount layers needs and that have reports absent; at most maxMissing of
// them.
func (a *Arch) Missing(blockCount int64, have func(hfName string) bool) []string {
	var missing []string
	for _, t := range a.Tensors {
		if t.Optional || t.GGUF == "" {
			continue
		}
		if !strings.Contains(t.HF, "{bid}") {
			if name := t.HF + ".weight"; !have(name) {
				missing = append(missing, name)
			}
			continue
		}
		for i := int64(0); i < blockCount && len(missing) < maxMissing; i++ {
			if name := strings.Replace(t.HF, "{bid}", strconv.FormatInt(i, 10), 1) + ".weight"; !have(name) {
				missing = append(missing, name)
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// permuteQ and permuteK turn the head layout of Hugging Face checkpoints into
// that of GGUF.
var (
	permuteQ = permuteRope("permute-rope-q", (*Config).heads, (*Keys).heads)
	permuteK = permuteRope("permute-rope-k", (*Config).headsKV, (*Keys).headsKV)
)

func permuteRope(name string, ofConfig func(*Config) (int64, error), ofFile func(*Keys) (int64, error)) *Transform {
	apply := func(s rows.Source, permute func(rows.Source, int64) (rows.Source, error), heads int64, err error) (rows.Source, error) {
		if err != nil {
			return nil, err
		}
		p, err := permute(s, heads)
		if err != nil {
			return nil, fault.Errorf(fault.Broken, "%w", err)
		}
		return p, nil
	}
	return &Transform{
		Name: name,
		Forward: func(c *Config, s rows.Source) (rows.Source, error) {
			heads, err := ofConfig(c)
			return apply(s, rows.PermuteRope, heads, err)
		},
		Inverse: func(k *Keys, s rows.Source) (rows.Source, error) {
			heads, err := ofFile(k)
			return apply(s, rows.UnpermuteRope, heads, err)
		},
	}
}

// heads and headsKV return the numbers of query and key heads; without a number
// of key heads there are as many as query heads. The order of the keys is that
// of the reference's Llama class, not that of headKeys.

func (c *Config) heads() (int64, error) { return c.Require("n_heads", "num_attention_heads") }

func (c *Config) headsKV() (int64, error) {
	heads, ok, err := c.Int("n_kv_heads", "num_key_value_heads")
	if err == nil && !ok {
		return c.heads()
	}
	return heads, err
}

func (k *Keys) heads() (int64, error) { return k.Require(keyHeadCount) }

func (k *Keys) headsKV() (int64, error) {
	heads, ok, err := k.Int(keyHeadCountKV)
	if err == nil && !ok {
		return k.heads()
	}
	return heads, err
}

// llama3Factors returns the frequency factors of the llama3 rope type: one per
// pair of rotating dimensions. Wavelengths below the high-frequency bound keep
// their frequency, those above the low-frequency bound are slowed down by the
// factor, between them the two are blended. All steps are float32, because the
// reference computes with float32 tensors; a number divided by a tensor is there
// the number times the tensor's reciprocal, which rounds twice.
func llama3Factors(c *Config) (rows.Source, error) {
	r := c.Rope()
	ropeType, _, err := r.String("rope_type")
	if err != nil || !strings.EqualFold(ropeType, "llama3") {
		return nil, err
	}
	dim, err := c.headDim()
	if err != nil {
		return nil, err
	}
	p := map[string]float64{
		"rope_theta": 10000, "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192,
	}
	for key := range p {
		f, ok, err := r.Float(key)
		if err != nil {
			return nil, err
		}
		if ok {
			p[key] = f
		}
		if !(p[key] > 0) {
			return nil, fault.Errorf(fault.Broken, "%s: key %q: want a positive number, found %v", ConfigFile, "rope_scaling."+key, p[key])
		}
	}
	if dim <= 0 || dim > maxHeadDim {
		return nil, fault.Errorf(fault.Broken, "%s: heads of %d elements, want 1 to %d", ConfigFile, dim, maxHeadDim)
	}
	low, high := p["low_freq_factor"], p["high_freq_factor"]
	if low == high {
		return nil, fault.Errorf(fault.Broken, "%s: low_freq_factor and high_freq_factor are both %v: no blend between them", ConfigFile, low)
	}
	length, factor := p["original_max_position_embeddings"], p["factor"]
	lowWavelen, highWavelen := float32(length/low), float32(length/high)
	exponents := make([]float32, 0, dim/2+1)
	for i := int64(0); i < dim; i += 2 {
		exponents = append(exponents, float32(i)/float32(dim))
	}
	powers := make([]float32, len(exponents))
	torchmath.PowScalar(powers, float32(p["rope_theta"]), exponents)
	factors := make([]float32, len(powers))
	for i, power := range powers {
		freq := 1 / power
		wavelen := 1 / freq * float32(2*math.Pi)
		switch {
		case wavelen < highWavelen:
			factors[i] = 1
		case wavelen > lowWavelen:
			factors[i] = float32(factor)
		default:
			smooth := (float32(1/wavelen*float32(length)) - float32(low)) / float32(high-low)
			factors[i] = 1 / (float32((1-smooth)/float32(factor)) + smooth)
		}
	}
	return rows.Float32s(factors), nil
}

// maxHeadDim bounds what is computed per dimension of a head; the largest known
// models have 576.
const maxHeadDim = 1 << 16

// KeepF32 reports whether a tensor of the file is stored as F32 in every output
// type: vectors, norms and everything that is not a weight. Source: the
// reference's rule in prepare_tensors.
func KeepF32(name string, ne []int64) bool {
	return len(ne) <= 1 || strings.HasSuffix(name, "_norm.weight") || !strings.HasSuffix(name, ".weight")
}

func init() {
	for _, a := range registry {
		for _, t := range a.Tensors {
			if strings.Contains(t.GGUF, "{bid}") != strings.Contains(t.HF, "{bid}") && t.GGUF != "" {
				panic(fmt.Sprintf("arch: %s: row %q maps to %q", a.Name, t.HF, t.GGUF))
			}
			if t.Transform != nil && (t.Transform.Forward == nil || t.Transform.Inverse == nil) {
				panic(fmt.Sprintf("arch: %s: row %q: transform %s goes one way only", a.Name, t.HF, t.Transform.Name))
			}
		}
	}
}
