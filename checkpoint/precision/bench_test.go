package precision

import (
	"math/rand/v2"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/rows"
)

// BenchmarkSources reads weights of [1024, 4096] in pieces of eight rows, as the writer
// does; the speed is that of the float32 output, on one core.
func BenchmarkSources(b *testing.B) {
	r := rand.New(rand.NewPCG(17, 18))
	const out, in = 1024, 4096
	for _, c := range []struct {
		name  string
		parts []*Tensor
		make  func([]*Tensor) (rows.Source, error)
	}{
		{"fp8-block", []*Tensor{random(r, "w", safetensors.F8_E4M3, out, in),
			small(r, "s", safetensors.F32, out/128, in/128)},
			func(p []*Tensor) (rows.Source, error) {
				return scaled(p, settings{"weight_block_size": []int64{128, 128}})
			}},
		{"fp8-channel", []*Tensor{random(r, "w", safetensors.F8_E4M3, out, in),
			small(r, "s", safetensors.BF16, out, 1)},
			func(p []*Tensor) (rows.Source, error) { return scaled(p, settings{}) }},
		{"gptq-4", []*Tensor{random(r, "w", safetensors.I32, in/8, out), random(r, "z", safetensors.I32, in/128, out/8),
			small(r, "s", safetensors.F16, in/128, out), nil},
			func(p []*Tensor) (rows.Source, error) { return gptq(p, settings{"group_size": int64(128)}) }},
		{"gptq-4-order", []*Tensor{random(r, "w", safetensors.I32, in/8, out),
			random(r, "z", safetensors.I32, in/128, out/8), small(r, "s", safetensors.F16, in/128, out),
			whole32("g", func(i int64) int64 { return i * 7 % 32 }, in)},
			func(p []*Tensor) (rows.Source, error) { return gptq(p, settings{}) }},
		{"gptq-3", []*Tensor{random(r, "w", safetensors.I32, in*3/32, out),
			random(r, "z", safetensors.I32, in/128, out*3/32), small(r, "s", safetensors.F16, in/128, out), nil},
			func(p []*Tensor) (rows.Source, error) { return gptq(p, settings{"group_size": int64(128)}) }},
		{"gptq-8", []*Tensor{random(r, "w", safetensors.I32, in/4, out), random(r, "z", safetensors.I32, in/128, out/4),
			small(r, "s", safetensors.F16, in/128, out), nil},
			func(p []*Tensor) (rows.Source, error) { return gptq(p, settings{"group_size": int64(128)}) }},
		{"awq", []*Tensor{random(r, "w", safetensors.I32, in, out/8), random(r, "z", safetensors.I32, in/128, out/8),
			small(r, "s", safetensors.F16, in/128, out)},
			func(p []*Tensor) (rows.Source, error) { return awq(p, settings{"group_size": int64(128)}) }},
		{"ct-pack-4", []*Tensor{random(r, "w", safetensors.I32, out, in/8),
			small(r, "s", safetensors.BF16, out, in/128), whole64("n", out, in), nil, nil},
			func(p []*Tensor) (rows.Source, error) {
				return packedInts(p,
					settings{"config_groups": settings{"g": settings{"weights": settings{"num_bits": int64(4),
						"group_size": int64(128)}}}})
			}},
		{"nf4", []*Tensor{random(r, "w", safetensors.U8, out*in/2, 1), random(r, "a", safetensors.U8, out*in/64),
			small(r, "m", safetensors.F32, 16),
			state(b, map[string]any{"blocksize": 64, "dtype": "bfloat16", "shape": []int64{out, in},
				"nested_blocksize": 256, "nested_offset": 0.5}), nil,
			small(r, "n", safetensors.F32, out*in/64/256), small(r, "t", safetensors.F32, 256)},
			func(p []*Tensor) (rows.Source, error) { return fourBits(p, nil) }},
		{"hqq", hqqBench(r, out, in, 4, 64, 1), func(p []*Tensor) (rows.Source, error) { return hqq(p, nil) }},
		{"hqq-columns", hqqBench(r, out, in, 4, 64, 0), func(p []*Tensor) (rows.Source, error) { return hqq(p, nil) }},
		{"int8", []*Tensor{random(r, "w", safetensors.I8, out, in), small(r, "s", safetensors.F32, out), nil},
			func(p []*Tensor) (rows.Source, error) { return int8Rows(p, nil) }},
		{"bitnet", []*Tensor{random(r, "w", safetensors.U8, out/4, in), small(r, "s", safetensors.BF16, 1)},
			func(p []*Tensor) (rows.Source, error) { return ternary(p, nil) }},
		{"nvfp4", []*Tensor{random(r, "w", safetensors.U8, out, in/2), random(r, "s", safetensors.F8_E4M3, out, in/16)},
			func(p []*Tensor) (rows.Source, error) { return nvfp4(p, nil) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			src, err := c.make(c.parts)
			if err != nil {
				b.Fatal(err)
			}
			var buf []byte
			b.SetBytes(out * in * 4)
			for b.Loop() {
				for a := int64(0); a < out; a += 8 {
					if _, err := src.Raw(&buf, a, a+8); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())*1000/float64(b.N)/(out*in), "ps/element")
		})
	}
}

// hqqBench returns the parts of a weight of HQQ in F16.
func hqqBench(r *rand.Rand, out, in, bits, group, axis int64) []*Tensor {
	p := make([]*Tensor, len(hqqParts))
	p[hqqCodes] = random(r, "w", safetensors.U8, out*in*bits/8)
	p[hqqScale], p[hqqZero] = small(r, "s", safetensors.F16, out*in/group), small(r, "z", safetensors.F16, out*in/group)
	p[hqqShape], p[hqqBits], p[hqqGroup], p[hqqAxis] = whole64("shape", out, in), whole64("nbits", bits),
		whole64("group_size", group), whole64("axis", axis)
	return p
}
