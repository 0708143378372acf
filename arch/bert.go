package arch

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(bert, distilbert, roberta, xlmRoberta, jinaBertV3, nomicBert, nomicBertMoE, jinaBertV2, modernBert,
	bertDecider, neoBert, euroBert)

// bert is BERT and its fine-tunes. Source: bert.py of the reference.
var bert = &table.Arch{
	Name: "bert",
	Classes: []string{"BertModel", "BertForMaskedLM", "CamembertModel", "BertForSequenceClassification",
		"BertForPreTraining"},
	Tokenizer: tokenizer.WordPiece{},
	Fused:     table.FusedQKV,
	Metadata:  bertMetadata,
	Unused:    bertUnused,
	Expect:    bertExpect,
	Rename:    []table.Rename{{Prefix: "bert.", With: ""}},
	Drop:      bertDrop,
	Tensors:   slices.Concat(bertEmbeddings(position(nil)), bertLayers, bertClassifier),
	Graph:     bertGraph,
}

// distilbert is BERT with half the layers and without token types. Source: DistilBertModel of the reference.
var distilbert = &table.Arch{
	Name:      "bert",
	Classes:   []string{"DistilBertModel", "DistilBertForMaskedLM", "DistilBertForSequenceClassification"},
	Tokenizer: tokenizer.WordPiece{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat([]table.Row{{Key: "attention.layer_norm_epsilon", Const: gguf.Float32(1e-12)}},
		bertMetadata),
	Unused: slices.Concat(bertUnused, []string{"sinusoidal_pos_embds", "qa_dropout", "seq_classif_dropout",
		"tie_weights_"}),
	Expect: []table.Expect{parts.Expect("activation", parts.GELU...)},
	Rename: []table.Rename{{Prefix: "distilbert.", With: ""}, {Prefix: "bert.", With: ""}},
	Drop:   slices.Concat(bertDrop, []table.Drop{{Prefix: "vocab_", Why: lmHead}}),
	Tensors: slices.Concat(position(nil), []table.TensorRow{
		{HF: "embeddings.word_embeddings", GGUF: "token_embd"},
		{HF: "embeddings.LayerNorm", GGUF: "token_embd_norm", Bias: table.NeedBias},
		{HF: "transformer.layer.{bid}.attention.q_lin", GGUF: "blk.{bid}.attn_q", Bias: table.NeedBias},
		{HF: "transformer.layer.{bid}.attention.k_lin", GGUF: "blk.{bid}.attn_k", Bias: table.NeedBias},
		{HF: "transformer.layer.{bid}.attention.v_lin", GGUF: "blk.{bid}.attn_v", Bias: table.NeedBias},
		{HF: "transformer.layer.{bid}.attention.out_lin", GGUF: "blk.{bid}.attn_output", Bias: table.NeedBias},
		{HF: "transformer.layer.{bid}.sa_layer_norm", GGUF: "blk.{bid}.attn_output_norm", Bias: table.NeedBias},
		{HF: "transformer.layer.{bid}.ffn.lin1", GGUF: "blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "transformer.layer.{bid}.ffn.lin2", GGUF: "blk.{bid}.ffn_down", Bias: table.NeedBias},
		{HF: "transformer.layer.{bid}.output_layer_norm", GGUF: "blk.{bid}.layer_output_norm", Bias: table.NeedBias},
		{HF: "pre_classifier", GGUF: "cls", Bias: table.NeedBias, Optional: true},
	}, bertClassifier),
	Graph: bertGraph,
}

// roberta is BERT with positions that start after pad_token_id. Source: RobertaModel of the reference.
var roberta = &table.Arch{
	Name:    "bert",
	Classes: []string{"RobertaModel", "RobertaForSequenceClassification", "RobertaForMaskedLM"},
	Tokenizer: tokenizer.Either{First: tokenizer.BPE{Then: tokenizer.Steps{tokenizer.TypeCount{}}},
		Else: tokenizer.WordPiece{}},
	Fused:    table.FusedQKV,
	Metadata: parts.Override(bertMetadata, robertaContext),
	Unused:   bertUnused,
	Expect:   bertExpect,
	Rename:   robertaRename,
	Drop:     bertDrop,
	Tensors: slices.Concat(bertEmbeddings(position(parts.FromPadding)), bertLayers, bertClassifier,
		robertaClassifier),
	Graph: bertGraph,
}

// xlmRoberta is RoBERTa with a SentencePiece vocabulary. Source: XLMRobertaModel of
// the reference.
var xlmRoberta = &table.Arch{
	Name:      "bert",
	Classes:   []string{"XLMRobertaModel", "XLMRobertaForSequenceClassification", "XLMRobertaForMaskedLM"},
	Tokenizer: tokenizer.FairseqUnigram{},
	Fused:     table.FusedQKV,
	Metadata:  parts.Override(bertMetadata, robertaContext),
	Unused:    bertUnused,
	Expect:    bertExpect,
	Rename:    robertaRename,
	Drop:      bertDrop,
	Tensors: slices.Concat(bertEmbeddings(position(parts.FromPadding)), bertLayers, bertClassifier,
		robertaClassifier),
	Variants: []*table.Arch{jinaBertV3},
	Variant: func(c *config.View) (*table.Arch, error) {
		if !config.IsNo(c.Value("lora_adaptations")) {
			return jinaBertV3, nil
		}
		return nil, nil
	},
	Graph: bertGraph,
}

// bertGraph has learned positions.
var bertGraph = func() *graph.Model {
	m := bertModel(parts.PostLN(parts.Bidirectional(), parts.GELUMLP))
	m.Embed.Positions = graph.Yes
	return m
}()

// bertModel is an encoder with token types and a norm of embeddings; the layers end with a norm.
func bertModel(layer []graph.Step, unread ...string) *graph.Model {
	return &graph.Model{
		Norm: graph.LayerNorm, Embed: graph.Embedding{Types: true, Norm: parts.EmbeddingNorm}, Layer: layer,
		Head: graph.Pool{}, Unread: unread, Runtime: parts.EncoderRuntime,
	}
}

// jinaBertV3 is XLM-RoBERTa with RoPE and task LoRA adapters, which are dropped: the reference writes each to a
// separate file. Source: XLMRobertaModel of the reference.
var jinaBertV3 = &table.Arch{
	Name:      "jina-bert-v3",
	Tokenizer: tokenizer.FairseqUnigram{},
	Fused:     table.FusedQKV,
	Metadata:  parts.Override(bertMetadata, robertaContext),
	Unused: slices.Concat(bertUnused, []string{"emb_pooler", "load_trained_adapters", "lora_alpha", "lora_dropout_p",
		"lora_main_params_trainable", "lora_rank", "matryoshka_dimensions",
		"rotary_emb_base", "task_instructions", "truncate_dim"}),
	Expect: []table.Expect{
		parts.Expect("hidden_act", parts.GELU...),
		parts.Expect("position_embedding_type", "rotary"),
		parts.Expect("is_decoder", "false"),
	},
	Rename: robertaRename,
	Drop: slices.Concat(bertDrop, []table.Drop{{Suffix: ".0.lora_A", Why: adapters},
		{Suffix: ".0.lora_B", Why: adapters}}),
	Tensors: slices.Concat(parametrized([]table.TensorRow{
		{HF: "embeddings.word_embeddings", GGUF: "token_embd"},
		{HF: "embeddings.token_type_embeddings", GGUF: "token_types", Optional: true},
		{HF: "encoder.layers.{bid}.mixer.Wqkv", GGUF: "blk.{bid}.attn_qkv", Bias: table.NeedBias},
		{HF: "encoder.layers.{bid}.mixer.out_proj", GGUF: "blk.{bid}.attn_output", Bias: table.NeedBias},
		{HF: "encoder.layers.{bid}.mlp.fc1", GGUF: "blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "encoder.layers.{bid}.mlp.fc2", GGUF: "blk.{bid}.ffn_down", Bias: table.NeedBias},
	}), []table.TensorRow{
		{HF: "emb_ln", GGUF: "token_embd_norm", Bias: table.NeedBias},
		{HF: "encoder.layers.{bid}.norm1", GGUF: "blk.{bid}.attn_output_norm", Bias: table.NeedBias},
		{HF: "encoder.layers.{bid}.norm2", GGUF: "blk.{bid}.layer_output_norm", Bias: table.NeedBias},
	}),
	Graph: bertModel(parts.PostLN(parts.Bidirectional(parts.NeoX), parts.GELUMLP)),
}

const adapters = "adapters for tasks"

// parametrized returns the rows of layers with LoRA parametrizations, whose weights are named
// NAME.parametrizations.weight.original in the checkpoint.
func parametrized(list []table.TensorRow) (out []table.TensorRow) {
	for _, r := range list {
		out = append(out, table.TensorRow{HF: r.HF + ".parametrizations.weight.original", GGUF: r.GGUF + ".weight",
			Exact: true, Optional: r.Optional})
		if r.Bias == table.NeedBias {
			out = append(out, table.TensorRow{HF: r.HF + ".bias", GGUF: r.GGUF + ".bias", Exact: true})
		}
		out = append(out, table.TensorRow{HF: r.HF + ".weight", GGUF: r.GGUF + ".weight", Exact: true, Optional: true})
	}
	return out
}

// nomicBert is BERT with RoPE and a gated FFN. The raw config.json is read, because the transformers library replaces
// sizes by its own defaults. Source: NomicBertModel of the reference.
var nomicBert = &table.Arch{
	Name:      "nomic-bert",
	Classes:   []string{"NomicBertModel"},
	Tokenizer: nomicTokens,
	Fused:     table.FusedQKV,
	Config:    config.Rules{Raw: true},
	Metadata:  parts.Override(bertMetadata, nomicContext),
	Unused:    nomicUnused,
	Expect: slices.Concat(nomicExpect, []table.Expect{parts.Expect("activation_function", "swiglu"),
		parts.Expect("qkv_proj_bias", "false"), parts.Expect("mlp_fc1_bias", "false"),
		parts.Expect("mlp_fc2_bias", "false")}),
	Rename: bert.Rename,
	Drop:   bertDrop,
	Tensors: slices.Concat(nomicLayers(table.NoBias), []table.TensorRow{
		{HF: "encoder.layers.{bid}.mlp.fc11", GGUF: "blk.{bid}.ffn_up"},
		{HF: "encoder.layers.{bid}.mlp.fc12", GGUF: "blk.{bid}.ffn_gate"},
		{HF: "encoder.layers.{bid}.mlp.fc2", GGUF: "blk.{bid}.ffn_down"},
	}),
	Variants: []*table.Arch{nomicBertMoE},
	Variant: func(c *config.View) (*table.Arch, error) {
		if n, _, _ := c.Int("moe_every_n_layers"); n != 0 {
			return nomicBertMoE, nil
		}
		return nil, nil
	},
	Graph: bertModel(parts.PostLN(parts.Bidirectional(parts.NeoX), parts.SwiGLU)),
}

// nomicBertMoE is nomicBert with an MoE FFN in every moe_every_n_layers-th layer.
var nomicBertMoE = &table.Arch{
	Name:      "nomic-bert-moe",
	Tokenizer: nomicTokens,
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.Override(bertMetadata, nomicContext), []table.Row{
		parts.UintRow("moe_every_n_layers", "moe_every_n_layers"),
		parts.UintRow("expert_used_count", "moe_top_k"),
	}),
	Unused: slices.Concat(nomicUnused, []string{"moe_impl", "moe_resid_pdrop", "moe_normalize_expert_weights",
		"expert_choice_router", "ffn_div", "num_shared_experts"}),
	Expect: slices.Concat(nomicExpect, []table.Expect{parts.Expect("activation_function", parts.GELU...),
		parts.Expect("qkv_proj_bias", "true"), parts.Expect("mlp_fc1_bias", "true"),
		parts.Expect("mlp_fc2_bias", "true")}),
	Rename: bert.Rename,
	Drop:   bertDrop,
	Tensors: slices.Concat(nomicLayers(table.NeedBias), []table.TensorRow{
		{HF: "encoder.layers.{bid}.mlp.fc1", GGUF: "blk.{bid}.ffn_up", Bias: table.NeedBias,
			If: parts.Not(nomicSparse)},
		{HF: "encoder.layers.{bid}.mlp.fc2", GGUF: "blk.{bid}.ffn_down", Bias: table.NeedBias,
			If: parts.Not(nomicSparse)},
		{HF: "encoder.layers.{bid}.mlp.router.layer", GGUF: "blk.{bid}.ffn_gate_inp", If: nomicSparse},
		{HF: "encoder.layers.{bid}.mlp.experts.mlp.w1", GGUF: "blk.{bid}.ffn_up_exps.weight", Exact: true,
			If: nomicSparse, Transform: nomicExperts},
		{HF: "encoder.layers.{bid}.mlp.experts.mlp.w2", GGUF: "blk.{bid}.ffn_down_exps.weight", Exact: true,
			If: nomicSparse, Transform: parts.Chain("nomic-experts-down", nomicExperts, parts.TransposeEach)},
		// the reference drops it, and runtimes have no tensor for it
		{HF: "encoder.layers.{bid}.mlp.experts.bias", If: nomicSparse},
	}),
	Graph: bertModel(parts.PostLN(parts.Bidirectional(parts.NeoX), parts.Sparse(
		graph.MoE{Router: parts.Router, Experts: parts.GELUMLP}, parts.GELUMLP)), "moe_every_n_layers"),
}

var nomicUnused = slices.Concat(bertUnused,
	[]string{"causal", "dense_seq_output", "fused_bias_fc", "fused_dropout_add_ln", "max_trained_positions",
		"n_positions", "pad_vocab_size_multiple",
		"rotary_emb_base", "rotary_emb_fraction", "rotary_scaling_factor", "use_rms_norm", "use_xentropy",
		"mlp_fc1_bias",
		"qkv_proj_bias",
		"scale_attn_weights", "reorder_and_upcast_attn", "router_aux_loss_coef"})

var nomicExpect = []table.Expect{
	parts.Expect("causal", "false"),
	parts.Expect("prenorm", "false"),
	parts.Expect("parallel_block", "false"), parts.Expect("parallel_block_tied_norm", "false"),
	parts.Expect("rotary_emb_fraction", "1"),
	parts.Expect("rotary_emb_interleaved", "false"),
	parts.Expect("rotary_emb_scale_base"),
	parts.Expect("use_rms_norm", "false"),
}

// nomicContext is the trained context length, not the length after RoPE scaling.
var nomicContext = table.Row{Key: "context_length", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
	n, err := c.Require("n_positions")
	if err != nil {
		return v, false, err
	}
	trained, ok, err := c.Int("max_trained_positions")
	if err != nil {
		return v, false, err
	}
	if !ok {
		trained = 2048
	}
	switch {
	case n == 8192 && trained == 2048:
		return gguf.Uint32(2048), true, nil
	case n == 2048 && trained == 2048:
		return gguf.Uint32(512), true, nil
	}
	return v, false, fault.Errorf(fault.Unsupported,
		"%s: n_positions is %d and max_trained_positions %d, want 8192 or 2048, and 2048",
		config.ConfigFile, n, trained)
}}

// nomicSparse reports whether a layer is an MoE layer.
func nomicSparse(l table.Layer) (bool, error) {
	n, err := l.Require("moe_every_n_layers")
	if err != nil || n < 1 {
		return false, err
	}
	return l.Bid%n == 1%n, nil
}

// nomicExperts splits a matrix of stacked experts: [experts*rows, width] becomes [experts, rows, width].
var nomicExperts = &table.Transform{Name: "nomic-experts",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		n, err := l.Require("num_local_experts", "num_experts")
		if err != nil {
			return nil, err
		}
		ne := s.NE()
		if len(ne) != 2 || n < 1 || ne[1]%n != 0 {
			return nil, fault.Errorf(fault.Broken,
				"dimensions %s, want two, with a number of rows that is divisible by %d experts", gguf.Shape(ne), n)
		}
		return rows.Reshape(s, []int64{ne[0], ne[1] / n, n})
	}}

func nomicLayers(bias table.Bias) []table.TensorRow {
	return []table.TensorRow{
		{HF: "embeddings.word_embeddings", GGUF: "token_embd"},
		{HF: "embeddings.token_type_embeddings", GGUF: "token_types", Optional: true},
		{HF: "emb_ln", GGUF: "token_embd_norm", Bias: table.NeedBias},
		{HF: "encoder.layers.{bid}.attn.Wqkv", GGUF: "blk.{bid}.attn_qkv", Bias: bias},
		{HF: "encoder.layers.{bid}.attn.out_proj", GGUF: "blk.{bid}.attn_output", Bias: bias},
		{HF: "encoder.layers.{bid}.norm1", GGUF: "blk.{bid}.attn_output_norm", Bias: table.NeedBias},
		{HF: "encoder.layers.{bid}.norm2", GGUF: "blk.{bid}.layer_output_norm", Bias: table.NeedBias},
	}
}

// jinaBertV2 is BERT with ALiBi and a gated FFN. Source: JinaBertV2Model of the reference.
var jinaBertV2 = &table.Arch{
	Name:      "jina-bert-v2",
	Classes:   []string{"JinaBertModel", "JinaBertForMaskedLM"},
	Tokenizer: jinaTokens,
	Fused:     table.FusedQKV,
	Metadata:  bertMetadata,
	Unused:    slices.Concat(bertUnused, []string{"attn_implementation", "emb_pooler", "feed_forward_type"}),
	Expect: []table.Expect{
		parts.Expect("hidden_act", parts.GELU...),
		parts.Expect("position_embedding_type", "alibi"),
		parts.Expect("feed_forward_type", "geglu"),
		parts.Expect("is_decoder", "false"),
	},
	Rename: bert.Rename,
	Drop:   bertDrop,
	Tensors: slices.Concat(bertEmbeddings(nil), bertAttention, []table.TensorRow{
		{HF: "encoder.layer.{bid}.attention.self.layer_norm_q", GGUF: "blk.{bid}.attn_q_norm", Bias: table.NeedBias,
			Optional: true},
		{HF: "encoder.layer.{bid}.attention.self.layer_norm_k", GGUF: "blk.{bid}.attn_k_norm", Bias: table.NeedBias,
			Optional: true},
		{HF: "encoder.layer.{bid}.layer_norm_1", GGUF: "blk.{bid}.attn_norm_2", Bias: table.NeedBias, Optional: true},
		{HF: "encoder.layer.{bid}.mlp.gated_layers", GGUF: "blk.{bid}.ffn_up"},
		{HF: "encoder.layer.{bid}.mlp.up_gated_layer", GGUF: "blk.{bid}.ffn_up", Optional: true},
		{HF: "encoder.layer.{bid}.mlp.wo", GGUF: "blk.{bid}.ffn_down", Bias: table.NeedBias},
		{HF: "encoder.layer.{bid}.mlp.down_layer", GGUF: "blk.{bid}.ffn_down", Bias: table.NeedBias, Optional: true},
		{HF: "encoder.layer.{bid}.mlp.layernorm", GGUF: "blk.{bid}.layer_output_norm", Bias: table.NeedBias},
		{HF: "encoder.layer.{bid}.layer_norm_2", GGUF: "blk.{bid}.layer_output_norm", Bias: table.NeedBias,
			Optional: true},
		{HF: "classifier", GGUF: "cls", Bias: table.NeedBias, Optional: true},
	}),
	Graph: bertModel([]graph.Step{
		graph.Residual{Part: graph.Attention{Steps: []graph.HeadStep{parts.MayQKNorm}, Scores: parts.ALiBi,
			Sees: graph.Both}, Sum: graph.Norm{Name: "attn_output_norm"}},
		graph.AddInput{Norm: graph.Norm{Name: "attn_norm_2"}}, // of the model for code
		graph.Residual{Part: parts.GeGLU, Sum: graph.Norm{Name: "layer_output_norm"}},
	}),
}

// modernBert is ModernBERT: RoPE, sliding-window layers and no biases. Source: ModernBertModel of the reference.
var modernBert = &table.Arch{
	Name:             "modern-bert",
	Classes:          []string{"ModernBertModel", "ModernBertForMaskedLM", "ModernBertForSequenceClassification"},
	Config:           config.Rules{Types: []string{"modernbert"}, Rope: modernBertRope},
	Tokenizer:        modernBertTokens,
	Fused:            table.FusedQKV,
	RopePerAttention: true,
	Metadata: slices.Concat(bertMetadata, []table.Row{
		parts.UintRow("attention.sliding_window", "local_attention"),
		parts.Optional(parts.UintRow("attention.sliding_window_pattern", "global_attn_every_n_layers")),
		{Key: "rope.scaling.type", Const: gguf.String("none")},
		parts.UintRow("vocab_size", "vocab_size"),
		{Key: "hidden_activation", Type: gguf.StringType, From: []string{"hidden_activation"}},
	}),
	Unused: slices.Concat(bertUnused, []string{"classifier_bias", "compiled_model", "decoder_bias",
		"deterministic_flash_attn", "embedding_dropout", "initializer_cutoff_factor",
		"layer_types", "norm_bias", "repad_logits_with_grad", "reference_compile", "sparse_pred_ignore_index",
		"sparse_prediction", "cls_token_id"}),
	Expect: []table.Expect{
		parts.Expect("attention_bias", "false"), parts.Expect("mlp_bias", "false"), parts.Expect("norm_bias", "false"),
	},
	Rename: modelPrefix,
	Drop:   slices.Concat(bertDrop, []table.Drop{{Prefix: "decoder.", Why: lmHead}}),
	Tensors: slices.Concat([]table.TensorRow{
		{HF: "embeddings.tok_embeddings", GGUF: "token_embd"},
		{HF: "embeddings.norm", GGUF: "token_embd_norm"},
		{HF: "final_norm", GGUF: "output_norm"},
		// the first layer has no attn_norm
		{HF: "layers.{bid}.attn_norm", GGUF: "blk.{bid}.attn_norm", If: parts.Not(parts.FirstLayer)},
		{HF: "layers.{bid}.attn.Wqkv", GGUF: "blk.{bid}.attn_qkv"},
		{HF: "layers.{bid}.attn.Wo", GGUF: "blk.{bid}.attn_output"},
		{HF: "layers.{bid}.mlp_norm", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "layers.{bid}.mlp.Wi", GGUF: "blk.{bid}.ffn_up"},
		{HF: "layers.{bid}.mlp.Wo", GGUF: "blk.{bid}.ffn_down"},
		{HF: "head.dense", GGUF: "cls", Bias: table.MayBias, Optional: true},
		{HF: "head.norm", GGUF: "cls.norm", Bias: table.MayBias, Optional: true},
	}, bertClassifier),
	Graph: &graph.Model{
		Norm: graph.LayerNorm, Embed: graph.Embedding{Norm: parts.EmbeddingNorm}, Final: parts.OutputNorm,
		Head: graph.Pool{Rank: graph.MeanGELU{}},
		Layer: []graph.Step{
			graph.ChooseStep{ // the first layer reads the normalized embeddings
				{In: graph.Where("i = 0"), Steps: []graph.Step{graph.Residual{Part: modernBertAttention}}},
				{In: graph.Every{}, Steps: []graph.Step{
					graph.Residual{Pre: graph.Norm{Name: "attn_norm"}, Part: modernBertAttention}}},
			},
			graph.Residual{Pre: graph.Norm{Name: "ffn_norm"},
				Part: graph.FFN{Act: graph.ActOf{Key: "hidden_activation", Or: graph.GELUErf}}},
		},
		Second: parts.DecisionHead,
		Unread: slices.Concat(parts.DecisionKeys, []string{"decision.max_head_tokens",
			"attention.layer_norm_rms_epsilon"}),
		Runtime: parts.EncoderRuntime,
	},
}

var modernBertAttention = parts.LocalGlobal(graph.Sliding{N: 3, First: true},
	graph.Attention{Steps: []graph.HeadStep{parts.DefaultLocalNeoX}, Sees: graph.Both,
		Window: graph.Window{Tokens: "n_swa", Shape: graph.SymmetricWindow}},
	parts.Bidirectional(parts.NeoX))

// bertDecider is a ModernBERT decision model, which chooses between options: see deciderConfigs.
var bertDecider = &table.Arch{
	Name:             modernBert.Name,
	Classes:          []string{deciderClass},
	Config:           config.Rules{Decision: readDecider},
	Tokenizer:        deciderTokens,
	Fused:            modernBert.Fused,
	RopePerAttention: true,
	BlockCount:       deciderLayers,
	Metadata: slices.Concat(parts.Override(modernBert.Metadata,
		table.Row{Key: table.KeyBlockCount, Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := deciderLayers(c)
			return table.Uint32Of(n, true, err)
		}},
		table.Row{Key: "feed_forward_length", Derive: deciderWidths},
	), []table.Row{
		{Key: "decision.type", Const: gguf.String("laya")},
		{Key: "decision.block_count", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := deciderHead(c)
			return table.Uint32Of(n, true, err)
		}},
		{Key: "decision.max_head_tokens", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, ok, err := c.Decision().Int("head_max_len")
			if !ok {
				n = 256
			}
			return table.Uint32Of(n, true, err)
		}},
		{Key: "decision.temperature", Facts: deciderFiles, Many: parts.Temperatures},
	}),
	Unused: append([]string{"decision"}, modernBert.Unused...),
	Expect: modernBert.Expect,
	Rename: []table.Rename{
		{Prefix: "encoder.", With: ""},
		{Prefix: "head.layers.", With: "head.layers.{bid}.", Number: parts.NumberAfter((*config.View).BlockCount)},
	},
	Drop: []table.Drop{
		{Prefix: "act_head.", Why: "action head, not needed for decisions"},
		{Prefix: "temperature", Why: table.Silent}, // the calibrated ones are in the decision config
	},
	Tensors: slices.Concat(parts.Restrict(parts.BeforeNextN,
		slices.DeleteFunc(slices.Clone(modernBert.Tensors), func(r table.TensorRow) bool {
			return strings.HasPrefix(r.GGUF, "cls")
		})), parts.DeciderLayers(parts.Not(parts.BeforeNextN))),
	Graph: modernBert.Graph,
}

// deciderHead returns the number of head layers, which follow the encoder.
func deciderHead(c *config.View) (int64, error) {
	n, err := c.Decision().Require("head_layers")
	if err == nil && (n < 0 || n > config.MaxBlocks) {
		err = config.WrongType("head_layers", "a number of layers", n)
	}
	return n, err
}

// deciderLayers returns the number of encoder and head layers.
func deciderLayers(c *config.View) (int64, error) {
	n, err := c.BoundedBlockCount(0)
	if err != nil {
		return 0, err
	}
	head, err := deciderHead(c)
	return n + head, err
}

// deciderWidths returns the FFN width of each layer; it is 4*hidden_size in head layers.
func deciderWidths(c *config.View) (v gguf.Value, ok bool, err error) {
	all, err := deciderLayers(c)
	if err != nil {
		return v, false, err
	}
	head, err := deciderHead(c)
	if err != nil {
		return v, false, err
	}
	width, err := c.Require("intermediate_size")
	if err != nil {
		return v, false, err
	}
	hidden, err := c.Require("hidden_size")
	if err == nil && hidden > config.MaxWidth {
		err = config.WrongType("hidden_size", "a size", hidden)
	}
	if err != nil {
		return v, false, err
	}
	return parts.PerLayer(slices.Concat(slices.Repeat([]int64{width}, int(all-head)),
		slices.Repeat([]int64{4 * hidden}, int(head))), nil)
}

var modelPrefix = []table.Rename{{Prefix: "model.", With: ""}}

// neoBert is NeoBERT. Source: NeoBert of the reference.
var neoBert = &table.Arch{
	Name:      "neo-bert",
	Classes:   []string{"NeoBERT", "NeoBERTLMHead", "NeoBERTForSequenceClassification"},
	Tokenizer: tokenizer.WordPiece{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(bertMetadata, []table.Row{
		{Key: "feed_forward_length", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := c.Require("intermediate_size")
			if err == nil && (n < 0 || n > config.MaxWidth) {
				err = config.WrongType("intermediate_size", "a size", n)
			}
			return table.Uint32Of(2*n/3, true, err)
		}},
		{Key: "rope.freq_base", Const: gguf.Float32(10000)},
		{Key: "rope.scaling.type", Const: gguf.String("none")},
		{Key: "attention.layer_norm_rms_epsilon", Type: gguf.Float32Type, From: []string{"norm_eps"},
			Const: gguf.Float32(1e-6)},
		{Key: "pooling_type", Const: gguf.Uint32(parts.PoolCLS)},
	}),
	Unused: slices.Concat(bertUnused, []string{"classifier_init_range", "decoder_init_range", "embedding_init_range",
		"flash_attention", "kwargs", "dim_head", "base_scale", "ngpt"}),
	Expect: []table.Expect{
		parts.Expect("ngpt", "false"),
		parts.DefaultRopeType, parts.UnitRopeFactor,
		parts.Expect("rope_theta", "10000"),
		parts.Expect("hidden_act", "swiglu", "SwiGLU"),
	},
	Rename: modelPrefix,
	Drop:   slices.Concat(bertDrop, []table.Drop{{Prefix: "decoder.", Why: lmHead}}),
	Tensors: slices.Concat([]table.TensorRow{
		{HF: "encoder", GGUF: "token_embd"},
		{HF: "layer_norm", GGUF: "enc.output_norm"},
		{HF: "transformer_encoder.{bid}.attention_norm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "transformer_encoder.{bid}.qkv", GGUF: "blk.{bid}.attn_qkv"},
		{HF: "transformer_encoder.{bid}.wo", GGUF: "blk.{bid}.attn_output"},
		{HF: "transformer_encoder.{bid}.ffn_norm", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "transformer_encoder.{bid}.ffn.w12", GGUF: "blk.{bid}.ffn_up"},
		{HF: "transformer_encoder.{bid}.ffn.w3", GGUF: "blk.{bid}.ffn_down"},
	}, bertClassifier),
	Graph: &graph.Model{
		Norm: graph.RMS, Layer: parts.PreNorm(parts.Bidirectional(parts.Interleaved), parts.SwiGLU),
		Final: []graph.Step{graph.Normalize{Norm: graph.Norm{Name: "enc.output_norm"}}}, Head: graph.Pool{},
		Runtime: parts.EncoderRuntime,
	},
}

// euroBert is a Llama with bidirectional attention. The raw config.json is read, because the transformers library's
// default for clf_pooling is a pooling type that the reference refuses. Source: EuroBertModel of the reference.
var euroBert = &table.Arch{
	Name:      "eurobert",
	Classes:   []string{"EuroBertModel", "EuroBertForMaskedLM", "JinaEmbeddingsV5Model"},
	Tokenizer: tokenizer.BPE{Before: tokenizer.Steps{parts.NoBOS}},
	Fused:     table.FusedQKV,
	Config:    config.Rules{Raw: true},
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		{Key: "attention.causal", Const: gguf.Bool(false)},
		{Key: "rope.scaling.type", Const: gguf.String("none")},
	}, poolingRows),
	Unused: slices.Concat(bertUnused, []string{"clf_pooling", "bos_token", "eos_token", "mask_token", "pad_token"}),
	Expect: []table.Expect{
		parts.SiLU,
		parts.Expect("attention_bias", "false"), parts.Expect("mlp_bias", "false"),
		parts.DefaultRopeType, parts.UnitRopeFactor,
	},
	Rename: modelPrefix,
	Drop:   []table.Drop{{Prefix: "lm_head.", Why: lmHead}},
	Tensors: []table.TensorRow{
		{HF: "embed_tokens", GGUF: "token_embd"},
		{HF: "norm", GGUF: "output_norm"},
		{HF: "layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q"},
		{HF: "layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k"},
		{HF: "layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v"},
		{HF: "layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
		{HF: "layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "layers.{bid}.mlp.gate_proj", GGUF: "blk.{bid}.ffn_gate"},
		{HF: "layers.{bid}.mlp.up_proj", GGUF: "blk.{bid}.ffn_up"},
		{HF: "layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
	},
	Graph: &graph.Model{
		Norm: graph.RMS, Layer: parts.PreNorm(parts.Bidirectional(parts.NeoX), parts.SwiGLU),
		Final: parts.OutputNorm, Head: graph.Pool{}, Runtime: parts.EncoderRuntime,
	},
}

// bertMetadata are the rows of all BERT-like encoders.
var bertMetadata = slices.Concat(parts.CommonRows, []table.Row{{Key: "attention.causal", Const: gguf.Bool(false)}},
	poolingRows, []table.Row{
		{Key: "classifier.output_labels", Derive: parts.OutputLabels},
	})

// poolingRows are the pooling type, and pooling type and activation of the classifier.
var poolingRows = []table.Row{
	parts.PoolingRow,
	{Key: "classifier.pooling_type", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		s, ok, err := c.String("classifier_pooling")
		if err != nil || !ok {
			return v, false, err
		}
		n := parts.PoolModes[s]
		if n != parts.PoolCLS && n != parts.PoolMean {
			return v, false, fault.Errorf(fault.Unsupported, "%s: classifier_pooling %q, want cls or mean",
				config.ConfigFile, s)
		}
		return gguf.Uint32(n), true, nil
	}},
	{Key: "classifier.activation", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		s, ok, err := c.String("classifier_activation")
		if err == nil && ok && !slices.Contains([]string{"gelu", "silu", "tanh"}, s) {
			err = fault.Errorf(fault.Unsupported, "%s: classifier_activation %q, want gelu, silu or tanh",
				config.ConfigFile, s)
		}
		return gguf.String(s), ok, err
	}},
}

var bertUnused = []string{"model_max_length", "chunk_size_feed_forward", "directionality", "gradient_checkpointing",
	"output_past", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
	"pooler_size_per_head", "pooler_type", "position_embedding_type", "pruned_heads", "sentence_transformers",
	"type_vocab_size", "add_cross_attention", "num_labels"}

var bertExpect = []table.Expect{
	parts.Expect("hidden_act", parts.GELU...),
	parts.Expect("position_embedding_type", "absolute"),
	parts.Expect("is_decoder", "false"),
}

const lmHead = "LM head, not needed for embeddings"

var bertDrop = []table.Drop{
	{Prefix: "embeddings.position_ids"}, // 0, 1, 2, ...
	{Prefix: "pooler.dense.", Why: "pooler, not needed for embeddings"},
	{Prefix: "cls.predictions", Why: lmHead},
	{Prefix: "cls.seq_relationship", Why: lmHead},
	{Prefix: "lm_head.", Why: lmHead},
}

func bertEmbeddings(position []table.TensorRow) []table.TensorRow {
	return slices.Concat(oldNorm("embeddings.LayerNorm", "token_embd_norm"), position, []table.TensorRow{
		{HF: "embeddings.word_embeddings", GGUF: "token_embd"},
		{HF: "embeddings.token_type_embeddings", GGUF: "token_types", Optional: true},
	})
}

// position returns the row of the learned position embeddings.
func position(t *table.Transform) []table.TensorRow {
	return []table.TensorRow{{HF: "embeddings.position_embeddings", GGUF: "position_embd", Transform: t}}
}

// oldNorm returns the rows of a norm, whose tensors are called gamma and beta in the oldest checkpoints.
func oldNorm(hf, name string) []table.TensorRow {
	return []table.TensorRow{
		{HF: hf, GGUF: name, Bias: table.NeedBias},
		{HF: hf + ".gamma", GGUF: name + ".weight", Exact: true, Optional: true},
		{HF: hf + ".beta", GGUF: name + ".bias", Exact: true, Optional: true},
	}
}

var bertAttention = slices.Concat([]table.TensorRow{
	{HF: "encoder.layer.{bid}.attention.self.query", GGUF: "blk.{bid}.attn_q", Bias: table.NeedBias},
	{HF: "encoder.layer.{bid}.attention.self.key", GGUF: "blk.{bid}.attn_k", Bias: table.NeedBias},
	{HF: "encoder.layer.{bid}.attention.self.value", GGUF: "blk.{bid}.attn_v", Bias: table.NeedBias},
	{HF: "encoder.layer.{bid}.attention.output.dense", GGUF: "blk.{bid}.attn_output", Bias: table.NeedBias},
}, oldNorm("encoder.layer.{bid}.attention.output.LayerNorm", "blk.{bid}.attn_output_norm"))

var bertLayers = slices.Concat(bertAttention, []table.TensorRow{
	{HF: "encoder.layer.{bid}.intermediate.dense", GGUF: "blk.{bid}.ffn_up", Bias: table.NeedBias},
	{HF: "encoder.layer.{bid}.output.dense", GGUF: "blk.{bid}.ffn_down", Bias: table.NeedBias},
}, oldNorm("encoder.layer.{bid}.output.LayerNorm", "blk.{bid}.layer_output_norm"))

// bertClassifier is the classification head: the output layer if the model has labels, else the layer before it.
var bertClassifier = []table.TensorRow{
	{HF: "classifier", GGUF: "cls.output", Bias: table.MayBias, Optional: true, If: parts.HasLabels},
	{HF: "classifier", GGUF: "cls", Bias: table.MayBias, Optional: true, If: parts.Not(parts.HasLabels)},
}

var robertaClassifier = []table.TensorRow{
	{HF: "classifier.dense", GGUF: "cls", Bias: table.NeedBias, Optional: true},
	{HF: "classifier.out_proj", GGUF: "cls.output", Bias: table.NeedBias, Optional: true},
}

var robertaRename = []table.Rename{{Prefix: "roberta.", With: ""}, {Prefix: "bert.", With: ""}}

// robertaContext is the number of positions without the unused ones at the start.
var robertaContext = table.Row{Key: "context_length", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
	n, ok, err := c.Int("max_position_embeddings")
	if err != nil || !ok {
		return v, false, err
	}
	offset, err := parts.PositionOffset(c)
	return table.Uint32Of(n-offset, true, err)
}}

var (
	// nomicTokens: of nomic-embed-text-v2-moe, the one model with experts, the model file lacks <mask>.
	nomicTokens = tokenizer.ByModel{
		{Name: "Unigram", Rules: tokenizer.FairseqUnigram{MaskKey: "moe_every_n_layers", MaskRow: 250001}},
		{Name: "WordPiece", Rules: tokenizer.WordPiece{}},
	}
	// jinaTokens: BERT's, BPE on words, or byte-level BPE.
	jinaTokens = tokenizer.ByClass{Classes: []tokenizer.NamedRules{
		{Name: "BertTokenizer", Rules: tokenizer.WordPiece{}},
		{Name: "RobertaTokenizer", Rules: tokenizer.BPE{Words: true, Then: tokenizer.Steps{parts.TokenTypes(2)}}},
	}}
	modernBertTokens = tokenizer.BPE{PlainBlanks: true, Before: tokenizer.Steps{
		parts.AddBOS,
		tokenizer.Set{Key: "tokenizer.ggml.add_eos_token", Value: gguf.Bool(true)},
		tokenizer.Set{Key: "tokenizer.ggml.add_sep_token", Value: gguf.Bool(true)},
	}}
	// deciderTokens has three types of questions, by token types.
	deciderTokens = tokenizer.Folder{Name: "tokenizer", Rules: modernBertTokens,
		Then: tokenizer.Steps{parts.TokenTypes(3), tokenizer.Prompt(deciderPrompt)}}
)

// deciderPrompt follows ModernBertDecisionModel (conversion/bert.py).
func deciderPrompt(s tokenizer.Settings) (string, error) {
	var token [3]string
	for i, name := range []string{"cls_token", "sep_token", "mask_token"} {
		var err error
		if token[i], err = s.Token(name); err != nil {
			return "", err
		}
	}
	description := parts.TextOrJSON("o.description")
	option := `{% if type == 'choice' %}{{ o.key }}{% if o.description %}: ` + description +
		`{% endif %}{% elif type == 'score' %}level {{ o.key }}: ` + description +
		`{% else %}{{ o.key }}: {% if o.description %}` + description +
		`{% elif o.key == 'true' %}yes, the statement holds{% else %}no, the statement does not hold{% endif %}{% endif %}`
	if decision, _ := s.Value("decision").(map[string]any); decision["architecture"] == "JuliaDecisionModel" {
		option = `{% if o.description %}` + description + `{% else %}{{ o.key }}{% endif %}`
	}
	return token[0] + `{{ type }} question: ` + parts.TextOrJSON("instructions") + token[1] +
		`{% for o in options %}` + token[2] + ` ` + option + `{% endfor %}` +
		token[1] + parts.TextOrJSON("state") + token[1], nil
}

// modernBertRope makes the rope settings of both kinds of attention, from rope_parameters or from the keys that older
// configs have.
func modernBertRope(s *config.RopeSettings) error {
	kinds := map[string]any{}
	for _, k := range []struct{ kind, key, theta string }{
		{"full_attention", "global_rope_theta", "160000"}, {"sliding_attention", "local_rope_theta", "10000"},
	} {
		m, err := s.Kind(k.kind)
		if err != nil {
			return err
		}
		if _, v := s.Use(k.key); v != nil && m["rope_theta"] == nil {
			m["rope_theta"] = v
		}
		if m["rope_theta"] == nil {
			m["rope_theta"] = json.Number(k.theta)
		}
		kinds[k.kind] = m
	}
	maps.Copy(s.Members, kinds)
	return nil
}

// deciderClass is the class of ModernBERT decision models, which no config.json names.
const deciderClass = "ModernBertDecisionModel"

// deciderConfigs are the files about the layers after a ModernBERT, of which the first counts. Its own configuration is
// encoder/config.json, and its tokenizer is in tokenizer: there is no other config.json. Source: the loader of such
// directories in the reference.
var deciderConfigs = []string{"julia_config.json", "rl_agent_config.json"}

func readDeciderHead(files config.Files) (name string, head []byte, err error) {
	for _, name := range deciderConfigs {
		head, ok, err := config.ReadFile(files, name)
		if ok || err != nil {
			return name, head, err
		}
	}
	return "", nil, nil
}

func readDecider(files config.Files) (*config.Decision, error) {
	d := &config.Decision{Class: deciderClass, File: "encoder/" + config.ConfigFile}
	name, head, err := readDeciderHead(files)
	if err != nil || name == "" {
		return nil, err
	}
	var ok bool
	if d.Config, ok, err = config.ReadFile(files, d.File); !ok {
		return nil, err
	}
	d.SettingsFile = name
	settings, err := config.ParseObject(name, head)
	d.Settings = settings.Members()
	return d, err
}

// deciderKinds are the kinds of questions in the order of the list "temperature".
var deciderKinds = []string{"choice", "score", "noul"}

// deciderFiles are the source of Facts.Temperatures: per kind, and per kind and number of options.
var deciderFiles = &config.Source{Read: readDeciderTemperatures}

func readDeciderTemperatures(files config.Files, _ *config.View, f *config.Facts) error {
	name, head, err := readDeciderHead(files)
	if err != nil || name == "" {
		return err
	}
	v, err := pyjson.Parse(head)
	if err != nil {
		return fault.Errorf(fault.Broken, "%s: %w", name, err)
	}
	root, _ := v.(*pyjson.Object)
	if value := root.Get("temperature"); value != nil {
		list, ok := value.([]any)
		if !ok {
			return config.WrongType("temperature", "a list", value)
		}
		for i := range min(len(list), len(deciderKinds)) {
			if err := f.AddTemperature(deciderKinds[i], list[i]); err != nil {
				return err
			}
		}
	}
	if value := root.Get("temperature_by_options"); value != nil {
		byOptions, ok := value.(*pyjson.Object)
		if !ok {
			return config.WrongType("temperature_by_options", "an object", value)
		}
		for _, of := range byOptions.Names {
			if err := f.AddTemperature(of, byOptions.Values[of]); err != nil {
				return err
			}
		}
	}
	return nil
}
