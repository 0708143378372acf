package hftest

func init() {
	// as llama.cpp's script converts WavTokenizer-large-speech-75token
	add(Spec{
		Name:      "wavtokenizer",
		Tokenizer: "none",
		DType:     "F32",
		Config: `{"architectures": ["WavTokenizerDec"], "convnext": {"n_embd": 64, "n_layer": 7},
			"group_norm_epsilon": 1e-06, "group_norm_groups": 32, "hidden_size": 66, "layer_norm_epsilon": 1e-06,
			"max_position_embeddings": 8192, "n_embd_features": 32, "n_ff": 96, "n_head": 1, "n_layer": 7,
			"posnet": {"n_embd": 64, "n_layer": 6}, "vocab_size": 128}`,
		Tensors: `
			pid = posnet.n_layer
			cid = convnext.n_layer
			n   = posnet.n_embd
			m   = convnext.n_embd
			backbone.embedding.weight              | vocab_size, n_embd_features
			backbone.embed.weight                  | n, n_embd_features, 7
			backbone.embed.bias                    | n, 1
			backbone.norm.{weight,bias}            | n
			backbone.final_layer_norm.{weight,bias} | m
			head.out.weight                        | hidden_size, m
			head.out.bias                          | hidden_size
			backbone.posnet.{pid}.norm{1,2}.{weight,bias}  | n, 1    | if pid != 2 && pid != 5
			backbone.posnet.{pid}.conv{1,2}.weight         | n, n, 3 | if pid != 2 && pid != 5
			backbone.posnet.{pid}.conv{1,2}.bias           | n, 1    | if pid != 2 && pid != 5
			backbone.posnet.{pid}.norm.{weight,bias}       | n, 1    | if pid == 2 || pid == 5
			backbone.posnet.{pid}.{q,k,v,proj_out}.weight  | n, n, 1 | if pid == 2
			backbone.posnet.{pid}.{q,k,v,proj_out}.bias    | n, 1    | if pid == 2
			backbone.convnext.{cid}.dwconv.weight          | m, 1, 7
			backbone.convnext.{cid}.dwconv.bias            | m, 1
			backbone.convnext.{cid}.norm.{weight,bias}     | m
			backbone.convnext.{cid}.pwconv1.weight         | n_ff, m
			backbone.convnext.{cid}.pwconv1.bias           | n_ff
			backbone.convnext.{cid}.pwconv2.weight         | m, n_ff
			backbone.convnext.{cid}.pwconv2.bias           | m
			backbone.convnext.{cid}.gamma.weight           | m
			vq.codebook.cluster_size                       | vocab_size
			vq.codebook.{embed_avg,inited}                 | vocab_size, n_embd_features
			`,
		Variants: []Variant{
			{Name: "f16", Seed: 3, DType: "F16", Shards: 2, Out: "auto"},
			{Name: "bf16", Seed: 4, Out: "bf16", Set: `{"n_layer": 9, "convnext": {"n_layer": 9}}`},
		},
	})
}
