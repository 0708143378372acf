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
	Transform Transform
	Bias      bool // a ".bias" may stand beside the weight
	Optional  bool // the weight may be missing
}

// Transform is a rearrangement of a tensor; nil leaves it as it is.
type Transform func(*Config, rows.Source) (rows.Source, error)

// ExtraTensor is a tensor that is computed from the config. They come before
// all others.
type ExtraTensor struct {
	GGUF string // whole name
	// Make returns the tensor, nil when the model has none.
	Make func(*Config) (rows.Source, error)
}

// Mapped is the destination of a tensor of the checkpoint.
type Mapped struct {
	Row    *TensorRow
	Name   string // in the file; "" when the tensor is dropped
	Layer  int64  // -1 outside the layers
	IsBias bool
}

// Map finds the row of a tensor of the checkpoint; ok is false when there is
// none. blockCount is the number of layers.
func (a *Arch) Map(name string, blockCount int64) (m Mapped, ok bool) {
	for i := range a.Tensors {
		row := &a.Tensors[i]
		if m, ok := row.match(name); ok && m.Layer < blockCount {
			return m, true
		}
	}
	return Mapped{}, false
}

func (t *TensorRow) match(name string) (Mapped, bool) {
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
	before, after, layered := strings.Cut(t.HF, "{bid}")
	if !layered {
		m.Name = t.GGUF + suffix
		if t.GGUF == "" {
			m.Name = ""
		}
		return m, base == t.HF
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
	if t.GGUF != "" {
		m.Name = strings.Replace(t.GGUF, "{bid}", digits, 1) + suffix
	}
	return m, true
}

// Missing returns the names, as in the checkpoint, of weights that a model of
// blockCount layers needs and that have reports absent.
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
		for i := range blockCount {
			if name := strings.Replace(t.HF, "{bid}", strconv.FormatInt(i, 10), 1) + ".weight"; !have(name) {
				missing = append(missing, name)
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// permuteQ and permuteK undo the head layout of Hugging Face checkpoints.

func permuteQ(c *Config, s rows.Source) (rows.Source, error) {
	heads, err := c.Require("n_heads", "num_attention_heads")
	if err != nil {
		return nil, err
	}
	return permute(s, heads)
}

func permuteK(c *Config, s rows.Source) (rows.Source, error) {
	heads, ok, err := c.Int("n_kv_heads", "num_key_value_heads")
	if err != nil {
		return nil, err
	}
	if !ok {
		return permuteQ(c, s)
	}
	return permute(s, heads)
}

func permute(s rows.Source, heads int64) (rows.Source, error) {
	p, err := rows.PermuteRope(s, heads)
	if err != nil {
		return nil, fault.Errorf(fault.Broken, "%w", err)
	}
	return p, nil
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
		}
	}
}
