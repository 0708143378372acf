package arch

import (
	"math"
	"strings"

	"ggforge/fault"
	"ggforge/internal/torchmath"
	"ggforge/rows"
)

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
		Forward: func(l Layer, s rows.Source) (rows.Source, error) {
			heads, err := ofConfig(l.Config)
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
		case low == high:
			return nil, fault.Errorf(fault.Broken, "%s: low_freq_factor and high_freq_factor are both %v: no blend between them", ConfigFile, low)
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
