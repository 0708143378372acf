package quantize

import "ggforge/gguf"

// The recipes of llama-quantize 0.7.0, measured on the tool and written down as
// rules, and our own (Recipe.Own). A new recipe is one row here.

// recipes is in the order of the reference's help text; our own come after their like.
var recipes = []Recipe{
	{
		Name: "Q1_0", FileType: 40, Type: gguf.TypeQ1_0, BPW: 1.48,
		Desc:  "1 bit: sign and a scale per 128 weights",
		rules: mix(),
	},
	{
		Name: "Q2_0", FileType: 41, Type: gguf.TypeQ2_0, BPW: 2.68,
		Desc:  "2 bits, blocks of 64",
		rules: mix(use(RoleEmbd, gguf.TypeQ4_K)),
	},
	{
		Name: "Q4_0", FileType: 2, Type: gguf.TypeQ4_0, BPW: 4.64,
		Desc:  "4 bits, scale per 32 weights",
		rules: mix(use(RoleDown, gguf.TypeQ4_1, withImportance, early(8))),
	},
	{
		Name: "Q4_1", FileType: 3, Type: gguf.TypeQ4_1, BPW: 5.1,
		Desc:  "4 bits, scale and minimum per 32 weights",
		rules: mix(),
	},
	{
		Name: "MXFP4_MOE", FileType: 38, Type: gguf.TypeMXFP4, BPW: 8.5,
		Desc: "MXFP4 for stacked experts, Q8_0 for the rest",
		rules: ruleset{first: []rule{
			use(RoleOutput, gguf.TypeQ8_0),
			use(roleAny, gguf.TypeMXFP4, stacked),
			use(roleAny, gguf.TypeQ8_0),
		}},
	},
	{
		Name: "MXFP4", FileType: 38, Type: gguf.TypeMXFP4, BPW: 4.42, Own: true,
		Desc:  "4-bit floats, a power of two per 32 weights, in all layers",
		rules: fp4Mix(),
	},
	{
		Name: "NVFP4", FileType: 39, Type: gguf.TypeNVFP4, BPW: 4.64, Own: true,
		Desc:  "4-bit floats, an 8-bit float per 16 weights, in all layers",
		rules: fp4Mix(),
	},
	{
		Name: "Q5_0", FileType: 8, Type: gguf.TypeQ5_0, BPW: 5.57,
		Desc:  "5 bits, scale per 32 weights",
		rules: mix(use(RoleDown, gguf.TypeQ5_1, withImportance, early(8))),
	},
	{
		Name: "Q5_1", FileType: 9, Type: gguf.TypeQ5_1, BPW: 6.04,
		Desc:  "5 bits, scale and minimum per 32 weights",
		rules: mix(),
	},
	{
		Name: "IQ2_XXS", FileType: 19, Type: gguf.TypeIQ2_XXS, BPW: 2.38,
		Desc:  "2-bit codebook, smallest; needs an importance matrix",
		rules: lowMix(gguf.TypeQ2_K),
	},
	{
		Name: "IQ2_XS", FileType: 20, Type: gguf.TypeIQ2_XS, BPW: 2.59,
		Desc:  "2-bit codebook; needs an importance matrix",
		rules: lowMix(gguf.TypeQ2_K),
	},
	{
		Name: "IQ2_S", FileType: 28, Type: gguf.TypeIQ2_XS, BPW: 2.74,
		Desc:  "IQ2_XS with IQ3_S for sensitive tensors; needs an importance matrix",
		rules: lowMix(gguf.TypeIQ3_S, use(RoleAttnOut, gguf.TypeIQ3_S)),
	},
	{
		Name: "IQ2_M", FileType: 29, Type: gguf.TypeIQ2_S, BPW: 2.93,
		Desc:  "IQ2_S with IQ3_S for sensitive tensors; needs an importance matrix",
		rules: lowMix(gguf.TypeIQ3_S, use(RoleAttnOut, gguf.TypeIQ3_S)),
	},
	{
		Name: "IQ1_S", FileType: 24, Type: gguf.TypeIQ1_S, BPW: 2,
		Desc:  "1.6-bit codebook; needs an importance matrix",
		rules: lowMix(gguf.TypeQ2_K, use(RoleAttnOut, gguf.TypeIQ2_XXS)),
	},
	{
		Name: "IQ1_M", FileType: 31, Type: gguf.TypeIQ1_M, BPW: 2.15,
		Desc:  "1.8-bit codebook; needs an importance matrix",
		rules: lowMix(gguf.TypeQ2_K, use(RoleAttnOut, gguf.TypeIQ2_XXS)),
	},
	{
		Name: "TQ1_0", FileType: 36, Type: gguf.TypeTQ1_0, BPW: 2.19,
		Desc:  "ternary weights, five to a byte",
		rules: mix(use(RoleEmbd, gguf.TypeQ4_K)),
	},
	{
		Name: "TQ2_0", FileType: 37, Type: gguf.TypeTQ2_0, BPW: 2.52,
		Desc:  "ternary weights, four to a byte",
		rules: mix(use(RoleEmbd, gguf.TypeQ4_K)),
	},
	{
		Name: "Q2_K", FileType: 10, Type: gguf.TypeQ2_K, BPW: 3.16,
		Desc: "Q2_K with Q3_K and Q4_K for sensitive tensors",
		rules: mix(
			use(roleVV, gguf.TypeQ4_K, gqa4),
			use(roleVV, gguf.TypeQ3_K),
			use(RoleDown, gguf.TypeQ3_K),
			use(RoleAttnOut, gguf.TypeQ5_K, notFalcon, experts8),
			use(RoleAttnOut, gguf.TypeQ3_K, notFalcon),
		),
	},
	{
		Name: "Q2_K_S", FileType: 21, Type: gguf.TypeQ2_K, BPW: 2.97,
		Desc: "Q2_K nearly throughout; needs an importance matrix",
		rules: mix(
			use(roleVV, gguf.TypeQ4_K, gqa4),
			use(RoleDown, gguf.TypeQ4_K, early(8)),
		),
		need: []gguf.Type{gguf.TypeQ2_K},
	},
	{
		Name: "IQ3_XXS", FileType: 23, Type: gguf.TypeIQ3_XXS, BPW: 3.25,
		Desc: "3-bit codebook, smallest; needs an importance matrix",
		rules: mix(
			use(RoleOutput, gguf.TypeQ5_K),
			use(RoleEmbd, gguf.TypeIQ3_S),
			use(roleVV, gguf.TypeQ4_K, gqa4),
			use(roleVV, gguf.TypeIQ3_S, noImportance),
			use(RoleK|RoleQ, gguf.TypeIQ2_S),
			use(RoleDown, gguf.TypeQ4_K, noImportance, early(8)),
			use(RoleDown, gguf.TypeQ3_K, noImportance),
			use(RoleAttnOut, gguf.TypeQ5_K, notFalcon, experts8),
			use(RoleAttnOut, gguf.TypeIQ3_S, notFalcon),
		),
	},
	{
		Name: "IQ3_S", FileType: 26, Type: gguf.TypeIQ3_S, BPW: 3.66,
		Desc: "3-bit codebook",
		rules: mix(
			use(roleVV, gguf.TypeQ4_K, gqa4),
			use(RoleAttnOut, gguf.TypeQ5_K, notFalcon, experts8),
		),
	},
	{
		Name: "IQ3_M", FileType: 27, Type: gguf.TypeIQ3_S, BPW: 3.76,
		Desc: "IQ3_S with Q4_K for sensitive tensors",
		rules: mix(
			use(roleVV, gguf.TypeQ4_K),
			use(RoleDown, gguf.TypeQ4_K, early(8)),
			use(RoleDown, gguf.TypeQ4_K, experts8, more),
			use(RoleAttnOut, gguf.TypeQ5_K, notFalcon, experts8),
			use(RoleAttnOut, gguf.TypeQ4_K, notFalcon),
		),
	},
	{
		Name: "IQ3_XS", FileType: 22, Type: gguf.TypeIQ3_S, BPW: 3.5,
		Desc: "IQ3_S with IQ3_XXS where it hurts least; needs an importance matrix",
		rules: mix(
			use(roleVV, gguf.TypeQ4_K, gqa4),
			use(RoleK|RoleQ, gguf.TypeIQ3_XXS),
			use(RoleAttnOut, gguf.TypeQ5_K, notFalcon, experts8),
			use(RoleUp|RoleGate, gguf.TypeIQ3_XXS, middle),
		),
	},
	{
		Name: "Q3_K_S", FileType: 11, Type: gguf.TypeQ3_K, BPW: 3.64,
		Desc:  "Q3_K nearly throughout",
		rules: mix(use(RoleAttnOut, gguf.TypeQ5_K, notFalcon, experts8)),
	},
	{
		Name: "Q3_K_M", Aliases: []string{"Q3_K"}, FileType: 12, Type: gguf.TypeQ3_K, BPW: 4,
		Desc: "Q3_K with Q4_K and Q5_K for sensitive tensors",
		rules: mix(
			use(roleVV, gguf.TypeQ5_K, leading(2)),
			use(roleVV, gguf.TypeQ4_K),
			use(RoleDown, gguf.TypeQ5_K, early(16)),
			use(RoleDown, gguf.TypeQ4_K, notFalcon),
			use(RoleDown, gguf.TypeQ4_K, more),
			use(RoleAttnOut, gguf.TypeQ5_K, notFalcon, experts8),
			use(RoleAttnOut, gguf.TypeQ4_K, notFalcon),
		),
	},
	{
		Name: "Q3_K_L", FileType: 13, Type: gguf.TypeQ3_K, BPW: 4.3,
		Desc: "Q3_K with Q5_K for sensitive tensors",
		rules: mix(
			use(roleVV, gguf.TypeQ5_K),
			use(RoleDown|RoleAttnOut, gguf.TypeQ4_K, falcon),
			use(RoleDown, gguf.TypeQ5_K),
			use(RoleAttnOut, gguf.TypeQ5_K, not8),
		),
	},
	{
		Name: "IQ4_NL", FileType: 25, Type: gguf.TypeIQ4_NL, BPW: 4.68,
		Desc:  "4 bits, uneven levels, blocks of 32",
		rules: iq4Mix(),
	},
	{
		Name: "IQ4_XS", FileType: 30, Type: gguf.TypeIQ4_XS, BPW: 4.46,
		Desc:  "4 bits, uneven levels, superblocks",
		rules: iq4Mix(),
	},
	{
		Name: "Q4_K_S", FileType: 14, Type: gguf.TypeQ4_K, BPW: 4.67,
		Desc: "Q4_K with Q5_K in the first layers",
		rules: mix(
			use(roleVV, gguf.TypeQ5_K, leading(4)),
			use(RoleDown, gguf.TypeQ5_K, notFalcon, early(8)),
			use(RoleAttnOut, gguf.TypeQ5_K, notFalcon, experts8),
		),
	},
	{
		Name: "Q4_K_M", Aliases: []string{"Q4_K"}, FileType: 15, Type: gguf.TypeQ4_K, BPW: 4.89,
		Desc: "Q4_K with Q6_K for half of attn_v and ffn_down",
		rules: mix(
			use(roleVV, gguf.TypeQ6_K, more),
			use(RoleDown, gguf.TypeQ6_K, notFalcon, more),
			use(RoleDown, gguf.TypeQ6_K, falcon, early(16)),
			use(RoleDown, gguf.TypeQ5_K, falcon, more),
			use(RoleAttnOut, gguf.TypeQ5_K, notFalcon, experts8),
		),
	},
	{
		Name: "Q5_K_S", FileType: 16, Type: gguf.TypeQ5_K, BPW: 5.57,
		Desc:  "Q5_K nearly throughout",
		rules: mix(),
	},
	{
		Name: "Q5_K_M", Aliases: []string{"Q5_K"}, FileType: 17, Type: gguf.TypeQ5_K, BPW: 5.7,
		Desc:  "Q5_K with Q6_K for half of attn_v and ffn_down",
		rules: mix(use(roleVV|RoleDown, gguf.TypeQ6_K, more)),
	},
	{
		Name: "Q6_K", FileType: 18, Type: gguf.TypeQ6_K, BPW: 6.56,
		Desc:  "Q6_K throughout",
		rules: mix(),
	},
	{
		Name: "Q8_0", FileType: 7, Type: gguf.TypeQ8_0, BPW: 8.5,
		Desc:  "8 bits, scale per 32 weights",
		rules: mix(use(RoleOutput, gguf.TypeQ8_0)),
	},
	{Name: "F16", FileType: 1, Type: gguf.TypeF16, BPW: 16, Desc: "half precision"},
	{Name: "BF16", FileType: 32, Type: gguf.TypeBF16, BPW: 16, Desc: "bfloat16"},
	{Name: "F32", FileType: 0, Type: gguf.TypeF32, BPW: 32, Desc: "single precision"},
	{Name: "COPY", Copy: true, Desc: "every tensor as it is"},
}

// outputRows come first in every recipe that gives the output head bits of its
// own: where superblocks do not fit, and in Falcon, it gets Q8_0.
var outputRows = []rule{
	use(RoleOutput, gguf.TypeQ8_0, falcon),
	use(RoleOutput, gguf.TypeQ8_0, misfit),
}

// mix puts own between the rules that most recipes share. With 8 experts the
// attention is a small part of the model, so keys and values get 8 bits.
func mix(own ...rule) ruleset {
	r := append([]rule{}, outputRows...)
	r = append(r, use(roleVV|RoleK, gguf.TypeQ8_0, experts8))
	r = append(r, own...)
	r = append(r, use(RoleOutput, gguf.TypeQ6_K))
	return ruleset{
		first: r,
		amend: []rule{use(roleVV, gguf.TypeQ5_K, big70, was(gguf.TypeQ3_K, gguf.TypeQ4_K))},
	}
}

// lowMix is shared by the recipes below 3 bits: t is the type of the most sensitive tensors, own comes after the shared
// rows.
func lowMix(t gguf.Type, own ...rule) ruleset {
	r := append([]rule{}, outputRows...)
	r = append(r,
		use(RoleOutput, gguf.TypeQ5_K),
		use(RoleEmbd, t),
		use(roleVV, gguf.TypeQ4_K, gqa4),
		use(roleVV, gguf.TypeQ4_K, experts4),
		use(roleVV, t),
		use(RoleK, gguf.TypeQ4_K, experts8),
		use(RoleDown, t, earlySeen(8)),
		use(RoleAttnOut, gguf.TypeQ5_K, experts8),
	)
	return ruleset{first: append(r, own...)}
}

// iq4Mix is shared by the two 4-bit types with non-linear levels (IQ4_NL, IQ4_XS).
func iq4Mix() ruleset {
	return mix(
		use(roleVV, gguf.TypeQ5_K, gqa4),
		use(RoleDown, gguf.TypeQ5_K, noImportance, early(8)),
		use(RoleAttnOut, gguf.TypeQ5_K, notFalcon, experts8),
	)
}

// fp4Mix is shared by our own recipes of 4-bit floats. Matrices of layers have one type, as the point of these types
// is hardware that multiplies them. Embedding rows are only looked up, so no such hardware is involved, and Q4_K loses
// less than FP4 at about the same size; the output head, whose errors no layer makes up for, has Q6_K. The ternary
// recipes have the same two types there. Rows that are not whole blocks of NVFP4 may be some of MXFP4.
func fp4Mix() ruleset {
	return mix(
		use(RoleEmbd, gguf.TypeQ4_K),
		use(roleAny&^RoleOutput, gguf.TypeMXFP4, misfit),
	)
}
