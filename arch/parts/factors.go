package parts

import (
	"math"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/internal/kernel/torchmath"
	"ggforge/rows"
)

// LongRopeFactors are the tensors of the longrope type, one factor per pair of rotary dimensions: for contexts beyond
// the original length (long) and within it (short).
func LongRopeFactors(dims func(*config.View) (int64, error)) []table.ExtraTensor {
	factors := func(key, other string) func(*config.View) (rows.Source, error) {
		return func(c *config.View) (rows.Source, error) {
			list, _, err := c.Rope().Floats(key)
			if err != nil {
				return nil, err
			}
			others, _, err := c.Rope().Floats(other)
			if err != nil || len(list) == 0 && len(others) == 0 {
				return nil, err
			}
			n, err := dims(c)
			if err != nil {
				return nil, err
			}
			if len(list) == 0 || 2*int64(len(list)) != n {
				return nil, fault.Errorf(fault.Broken,
					"%s: rope setting %q has %d factors, want one for each 2 of %d dimensions", config.ConfigFile, key,
					len(list), n)
			}
			out := make([]float32, len(list))
			for i, f := range list {
				out[i] = float32(f)
			}
			return rows.Float32s(out), nil
		}
	}
	return []table.ExtraTensor{
		{GGUF: "rope_factors_long.weight", Make: factors("long_factor", "short_factor")},
		{GGUF: "rope_factors_short.weight", Make: factors("short_factor", "long_factor")},
	}
}

// RopeFactors returns a tensor of frequency factors, at least one: a head of one dimension has no pair to rotate.
func RopeFactors(c *config.View, factors []float32) (rows.Source, error) {
	if len(factors) == 0 {
		return nil, fault.Errorf(fault.Broken, "%s: rope settings for heads without two dimensions that could rotate",
			c.FileName())
	}
	return rows.Float32s(factors), nil
}

// Llama3Extra is Llama3Factors as the tensor rope_freqs.
var Llama3Extra = []table.ExtraTensor{{GGUF: "rope_freqs.weight", Make: Llama3Factors}}

// Llama3Factors returns the frequency factors of the llama3 rope type: one per pair of rotary dimensions. Wavelengths
// below the high-frequency bound keep their frequency, those above the low-frequency bound are divided by the factor,
// those between are blended. All steps are float32, as in the reference's tensors, where number / tensor is number * (1
// / tensor), which rounds twice.
func Llama3Factors(c *config.View) (rows.Source, error) {
	r := c.Rope()
	ropeType, _, err := r.String("rope_type")
	if err != nil || !strings.EqualFold(ropeType, "llama3") {
		return nil, err
	}
	dim, err := c.HeadDim()
	if err != nil {
		return nil, err
	}
	theta, ok, err := r.Float("rope_theta")
	if err != nil {
		return nil, err
	}
	if !ok {
		theta = 10000
	}
	p, err := Llama3Settings(r)
	if err != nil {
		return nil, err
	}
	powers, err := RopePowers(theta, dim)
	if err != nil {
		return nil, err
	}
	low, high, length, factor := p.Low, p.High, p.Length, p.Factor
	lowWavelen, highWavelen := float32(length/low), float32(length/high)
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
			return nil, fault.Errorf(fault.Broken,
				"%s: low_freq_factor and high_freq_factor are both %v: no blend between them", config.ConfigFile, low)
		default:
			smooth := (float32(1/wavelen*float32(length)) - float32(low)) / float32(high-low)
			factors[i] = 1 / (float32((1-smooth)/float32(factor)) + smooth)
		}
	}
	return RopeFactors(c, factors)
}

// Llama3 has the settings of the llama3 rope type, all positive.
type Llama3 struct{ Factor, Low, High, Length float64 }

// Llama3Settings reads the settings from an object of rope settings.
func Llama3Settings(r config.Object) (p Llama3, err error) {
	for _, s := range []struct {
		to       *float64
		key      string
		standard float64
	}{{&p.Factor, "factor", 8}, {&p.Low, "low_freq_factor", 1}, {&p.High, "high_freq_factor", 4},
		{&p.Length, "original_max_position_embeddings", 8192}} {
		f, ok, err := r.Float(s.key)
		if err != nil {
			return p, err
		}
		if !ok {
			f = s.standard
		}
		if *s.to = f; !(f > 0) {
			return p, notPositive(s.key, f)
		}
	}
	return p, nil
}

func notPositive(key string, f float64) error {
	return fault.Errorf(fault.Broken, "%s: key %q: want a positive number, found %v", config.ConfigFile,
		"rope_scaling."+key, f)
}

// RopePowers returns theta^(2i/dim) for each pair i of dim rotary dimensions, in float32 as PyTorch computes it.
func RopePowers(theta float64, dim int64) ([]float32, error) {
	if !(theta > 0) {
		return nil, notPositive("rope_theta", theta)
	}
	if dim <= 0 || dim > config.MaxHeadDim {
		return nil, fault.Errorf(fault.Broken, "%s: heads of %d elements, want 1 to %d", config.ConfigFile, dim,
			config.MaxHeadDim)
	}
	exponents := make([]float32, 0, dim/2+1)
	for i := int64(0); i < dim; i += 2 {
		exponents = append(exponents, float32(i)/float32(dim))
	}
	powers := make([]float32, len(exponents))
	torchmath.PowScalar(powers, float32(theta), exponents)
	return powers, nil
}
