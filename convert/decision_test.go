package convert_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/checkpoint/torch/torchfiletest"
	"ggforge/convert"
	"ggforge/fault"
	"ggforge/test/hftest"
)

// TestDecisionDefects converts decision models with broken files next to the model: each error has the file and the
// defect.
func TestDecisionDefects(t *testing.T) {
	codes := func(ids, more string) string {
		return `{"token_ids": ` + ids + `, "temperature": 1` + more + `}`
	}
	const d3 = `, "format_id": "d3-code-readout-v1", "prompt": "d3", "attention_mode": "noncausal_full_attention"`
	matrix := func(name string, shape ...int64) []safetensorstest.Tensor {
		n := int64(2)
		for _, d := range shape {
			n *= d
		}
		return []safetensorstest.Tensor{{Name: name, DType: safetensors.BF16, Shape: shape, Data: make([]byte, n)}}
	}
	for name, test := range map[string]struct {
		spec  string
		files map[string]string // "" removes one
		file  string            // of tensors, written anew
		list  []safetensorstest.Tensor
		head  []byte // of head.pt
		kind  error
		want  string // in the message
	}{
		"json": {spec: "pplx_decider", files: map[string]string{"decision_config.json": `{"token_ids"`},
			kind: fault.Broken, want: "decision_config.json: "},
		"no-object": {spec: "pplx_decider", files: map[string]string{"decision_config.json": `[1]`},
			kind: fault.Broken, want: "decision_config.json: want a JSON object"},
		"no-temperature": {spec: "pplx_decider",
			files: map[string]string{"decision_config.json": `{"token_ids": [1, 2, 3, 4, 5, 6]}`}, kind: fault.Broken,
			want: `decision_config.json: has no key "temperature"`},
		"temperature": {spec: "pplx_decider",
			files: map[string]string{"decision_config.json": `{"token_ids": [1, 2, 3, 4, 5, 6], "temperature": "1"}`},
			kind:  fault.Broken, want: `decision_config.json: key "temperature": want a number`},
		"infinite": {spec: "pplx_decider",
			files: map[string]string{"decision_config.json": `{"token_ids": [1, 2, 3, 4, 5, 6], "temperature": 1e300}`},
			kind:  fault.Broken, want: "does not fit float32"},
		"tokens": {spec: "pplx_decider", files: map[string]string{"decision_config.json": codes(`"A"`, "")},
			kind: fault.Broken, want: `decision_config.json: key "token_ids": want a list`},
		"text-token": {spec: "pplx_decider",
			files: map[string]string{"decision_config.json": codes(`[1, 2, "3", 4, 5, 6]`, "")}, kind: fault.Broken,
			want: `decision_config.json: key "token_ids[2]": want an integer`},
		"few-tokens": {spec: "pplx_decider",
			files: map[string]string{"decision_config.json": codes(`[1, 2, 3]`, "")}, kind: fault.Broken,
			want: `want a row for each of the 3 tokens of "token_ids" of decision_config.json`},
		"token-twice": {spec: "pplx_decider",
			files: map[string]string{"decision_config.json": codes(`[1, 2, 3, 1, 5, 6]`, "")}, kind: fault.Broken,
			want: `decision_config.json: key "token_ids": token 1 is there twice`},
		"negative-token": {spec: "pplx_decider",
			files: map[string]string{"decision_config.json": codes(`[1, 2, 3, -1, 5, 6]`, "")}, kind: fault.Broken,
			want: "want numbers of 1024 tokens, found -1"},
		"token-beyond": {spec: "vllm_d3",
			files: map[string]string{"decision_config.json": codes(`[1, 2, 3, 1024, 5, 6]`, d3+`, "pooling": "last"`)},
			kind:  fault.Broken, want: "want numbers of 1024 tokens, found 1024"},
		"attention": {spec: "pplx_decider",
			files: map[string]string{"decision_config.json": codes(`[1, 2, 3, 4, 5, 6]`,
				`, "attention_mode": "noncausal_full_attention"`)}, kind: fault.Unsupported,
			want: `decision_config.json: key "attention_mode" is "noncausal_full_attention"`},
		"pooling": {spec: "vllm_d3",
			files: map[string]string{"decision_config.json": codes(`[1, 2, 3, 4, 5, 6]`, d3)}, kind: fault.Unsupported,
			want: `decision_config.json: key "pooling" is "", want "last"`},
		"no-readout": {spec: "vllm_d3", files: map[string]string{"readout.safetensors": ""}, kind: fault.Broken,
			want: "readout.safetensors: "},
		"readout-cut": {spec: "pplx_decider",
			files: map[string]string{"readout.safetensors": "\x10\x00\x00\x00\x00\x00\x00\x00{"}, kind: fault.Broken,
			want: "readout.safetensors: "},
		"readout-name": {spec: "pplx_decider", file: "readout.safetensors", list: matrix("bias", 6, 64),
			kind: fault.Unsupported, want: "readout.bias"},
		"readout-vector": {spec: "pplx_decider", file: "readout.safetensors", list: matrix("weight", 6),
			kind: fault.Broken, want: "readout.safetensors: tensor \"readout.weight\": scatter-codes: dimensions 6"},
		"head-json": {spec: "clef", files: map[string]string{"joint_head_config.json": "{"}, kind: fault.Broken,
			want: "joint_head_config.json: "},
		"no-layers": {spec: "clef",
			files: map[string]string{"joint_head_config.json": `{"routing_layers": 2, "heads": 2}`}, kind: fault.Broken,
			want: `joint_head_config.json: has no key "layers"`},
		"many-layers": {spec: "clef",
			files: map[string]string{"joint_head_config.json": `{"routing_layers": 1000000000, "layers": 1, "heads": 2}`}, kind: fault.Broken, want: `joint_head_config.json: key "routing_layers": want at most`},
		"negative-layers": {spec: "clef",
			files: map[string]string{"joint_head_config.json": `{"routing_layers": 2, "layers": -1, "heads": 2}`},
			kind:  fault.Broken, want: `joint_head_config.json: key "layers": want at most`},
		"fewer-layers": {spec: "clef",
			files: map[string]string{"joint_head_config.json": `{"routing_layers": 1, "layers": 1, "heads": 2}`},
			kind:  fault.Unsupported, want: "joint_head.evidence_layers.1."},
		"more-layers": {spec: "clef",
			files: map[string]string{"joint_head_config.json": `{"routing_layers": 2, "layers": 2, "heads": 2}`},
			kind:  fault.Broken, want: "joint_head.layers."},
		"no-heads": {spec: "clef",
			files: map[string]string{"joint_head_config.json": `{"routing_layers": 2, "layers": 1, "heads": 0}`},
			kind:  fault.Broken, want: `joint_head_config.json: key "heads": want at least 1, found 0`},
		"no-head": {spec: "clef", files: map[string]string{"joint_head.safetensors": ""}, kind: fault.Broken,
			want: "joint_head.safetensors: "},
		"other-head": {spec: "clef", file: "joint_head.safetensors",
			list: matrix("question_projection.weight", 32, 64), kind: fault.Broken, want: "tensors are missing"},
		"pointer": {spec: "vllm_decision2",
			files: map[string]string{"config.json": `{"decision_format": "vllm-sr-decision", "package_schema": "dev2-package/1"}`}, kind: fault.Broken, want: `config.json: has no key "backbone.config"`},
		"pointer-text": {spec: "vllm_decision2",
			files: map[string]string{"config.json": `{"decision_format": "vllm-sr-decision", "backbone": {"config": 3}}`}, kind: fault.Broken, want: `config.json: key "backbone.config": want a string`},
		"pointer-out": {spec: "vllm_decision2",
			files: map[string]string{"config.json": `{"decision_format": "vllm-sr-decision", "backbone": {"config": "../x/config.json"}, "model_config": "decision_config.json"}`}, kind: fault.Broken, want: `"../x/config.json": want the name of a file in the model directory`},
		"head-out": {spec: "vllm_decision2",
			files: map[string]string{"config.json": `{"decision_format": "vllm-sr-decision", "backbone": {"config": "backbone/config.json"}, "model_config": "/etc/passwd"}`}, kind: fault.Broken, want: `"/etc/passwd": want the name of a file in the model directory`},
		"architecture": {spec: "vllm_decision2",
			files: map[string]string{"decision_config.json": `{"architecture": "qwen3.5-text-endpoints-global-query-shared-bilinear-mlp", "head_variant": "shared"}`}, kind: fault.Unsupported, want: `decision_config.json: key "architecture" is "qwen3.5-`},
		"variant": {spec: "vllm_decision2",
			files: map[string]string{"decision_config.json": `{"architecture": "qwen3-text-endpoints-global-query-shared-bilinear-mlp"}`}, kind: fault.Unsupported, want: `decision_config.json: key "head_variant" is "", want "shared"`},
		"no-bias": {spec: "vllm_decision2", files: map[string]string{"score_bias.json": ""}, kind: fault.Broken,
			want: "score_bias.json: "},
		"bias-list": {spec: "vllm_decision2", files: map[string]string{"score_bias.json": `{"offsets": [1]}`},
			kind: fault.Broken, want: `score_bias.json: key "offsets": want an object`},
		"bias-text": {spec: "vllm_decision2",
			files: map[string]string{"score_bias.json": `{"offsets": {"3": [1, "2"]}}`}, kind: fault.Broken,
			want: `score_bias.json: key "offsets.3[1]": want a number`},
		"bias-null": {spec: "vllm_decision2",
			files: map[string]string{"score_bias.json": `{"offsets": {"3": null}}`}, kind: fault.Broken,
			want: `score_bias.json: has no key "offsets.3"`},
		"no-backbone": {spec: "vllm_decision2", files: map[string]string{"backbone/model.safetensors": ""},
			kind: fault.Broken, want: "backbone: "},
		"no-decision": {spec: "vllm_decision2", files: map[string]string{"decision_head.safetensors": ""},
			kind: fault.Broken, want: "decision_head.safetensors: "},
		"no-calibration": {spec: "lev", files: map[string]string{"calibration.json": ""}, kind: fault.Broken,
			want: "calibration.json: "},
		"calibration": {spec: "lev", files: map[string]string{"calibration.json": `{"temperatures": [1]}`},
			kind: fault.Broken, want: `calibration.json: key "temperatures": want an object`},
		"calibrated": {spec: "lev",
			files: map[string]string{"calibration.json": `{"temperatures": {"choice": 1}}`}, kind: fault.Broken,
			want: `want names such as choice:A, found "choice"`},
		"calibrated-text": {spec: "lev",
			files: map[string]string{"calibration.json": `{"temperatures": {"choice:A": "1"}}`}, kind: fault.Broken,
			want: `calibration.json: key "temperatures.choice:A": want a number`},
		"other-task": {spec: "nimble", files: map[string]string{"schema_config.json": `{"task": "other"`},
			kind: fault.Broken, want: "schema_config.json: "},
		"revision": {spec: "nimble",
			files: map[string]string{"schema_config.json": `{"task": "schema_candidate_classification_v2", "revision": 3}`}, kind: fault.Broken, want: `schema_config.json: key "revision": want a string`},
		"dora": {spec: "nimble",
			files: map[string]string{"adapter_config.json": `{"lora_alpha": 8, "r": 4, "use_dora": true}`},
			kind:  fault.Unsupported, want: "magnitudes of DoRA"},
		"no-base": {spec: "lev",
			files: map[string]string{"hub/models--acme--base/snapshots/0123456789abcdef0123456789abcdef01234567/config.json": ""}, kind: fault.Broken, want: "the base model, "},
		"pair-alone": {spec: "lev", file: "adapter_model.safetensors",
			list: matrix("base_model.model.model.layers.0.mlp.up_proj.lora_A.weight", 4, 64), kind: fault.Broken,
			want: "has no other side"},
		"pair-elsewhere": {spec: "lev", file: "adapter_model.safetensors",
			list: append(matrix("base_model.model.model.layers.9.mlp.up_proj.lora_A.weight", 4, 64),
				matrix("base_model.model.model.layers.9.mlp.up_proj.lora_B.weight", 96, 4)...), kind: fault.Broken,
			want: "model.layers.9.mlp.up_proj.weight"},
		"pair-shape": {spec: "nimble", file: "adapter_model.safetensors",
			list: append(matrix("base_model.model.model.layers.0.mlp.up_proj.lora_A.weight", 4, 32),
				matrix("base_model.model.model.layers.0.mlp.up_proj.lora_B.weight", 96, 4)...), kind: fault.Broken,
			want: "the pair of \"model.language_model.layers.0.mlp.up_proj.weight\""},
		"no-pointer": {spec: "kev", files: map[string]string{"head.pt": ""}, kind: fault.Broken,
			want: "head.pt: "},
		"pointer-cut": {spec: "kev", files: map[string]string{"head.pt": "PK\x03\x04"}, kind: fault.Broken,
			want: "head.pt: "},
		"pointer-calls": {spec: "kev", head: torchfiletest.Zip(new(torchfiletest.Pickle).Op(0x80, 2).Global("os",
			"system").Op('(').Str("id").Op('t').Op('R').Op('.').Bytes(), nil, nil), kind: fault.Refused,
			want: `names "os.system"`},
		"no-width": {spec: "kev", head: kevHead(24, 64, "head_dim", nil), kind: fault.Broken,
			want: `head.pt: has no key "head_dim"`},
		"width": {spec: "kev", head: kevHead(24, 64, "head_dim", int64(32)), kind: fault.Broken,
			want: `want 32 rows (key "head_dim" of head.pt)`},
		"width-negative": {spec: "kev", head: kevHead(24, 64, "head_dim", int64(-24)), kind: fault.Broken,
			want: `head.pt: key "head_dim": want a positive number`},
		"isolation": {spec: "kev", head: kevHead(24, 64, "option_isolation", true), kind: fault.Unsupported,
			want: `head.pt: key "option_isolation" is "true"`},
		"kev-no-temperature": {spec: "kev", head: kevHead(24, 64, "temperature", nil), kind: fault.Broken,
			want: `head.pt: has no key "temperature"`},
		"kev-temperature": {spec: "kev", head: kevHead(24, 64, "temperature", "1"), kind: fault.Broken,
			want: `head.pt: key "temperature": want a number`},
		"kev-nan-temperature": {spec: "kev", head: kevHead(24, 64, "temperature", math.NaN()), kind: fault.Broken,
			want: `head.pt: key "temperature": want a number`},
		"pointer-columns": {spec: "kev", head: kevHead(24, 32, "x", nil), kind: fault.Broken,
			want: "cls.output.weight"},
		"pointer-more": {spec: "kev", head: kevHead(24, 64, "v",
			torchfiletest.Tensor{DType: safetensors.F32, Shape: []int64{1}, Data: make([]byte, 4)}),
			kind: fault.Unsupported, want: "kev/v"},
		"pointer-less": {spec: "kev", head: kevHead(24, 64, "head", nil), kind: fault.Broken, want: "kev/head/"},
		"readout-columns": {spec: "pplx_decider", file: "readout.safetensors", list: matrix("weight", 6, 32),
			kind: fault.Broken, want: "output.weight"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := hftest.Lookup(test.spec)
			dir, err := s.Write(t.TempDir(), s.All()[0])
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range test.files {
				path := filepath.Join(dir, file)
				if text == "" {
					err = os.Remove(path)
				} else {
					err = os.WriteFile(path, []byte(text), 0o666)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if test.file != "" {
				if err := safetensorstest.Write(filepath.Join(dir, test.file), test.list, nil); err != nil {
					t.Fatal(err)
				}
			}
			if test.head != nil {
				if err := os.WriteFile(filepath.Join(dir, "head.pt"), test.head, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			job, err := convert.Prepare(t.Context(), dir, convert.Options{Pre: s.PreTokenizer(), Base: s.BaseDir(dir)})
			if err == nil {
				job.Close()
			}
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want an error of kind %v with %q", err, test.kind, test.want)
			}
		})
	}
}

// kevHead returns Kev's head of rows by columns with one member replaced, nil for none.
func kevHead(rows, columns int64, key string, v any) []byte {
	tensor := func(shape ...int64) torchfiletest.Tensor {
		n := int64(4)
		for _, d := range shape {
			n *= d
		}
		return torchfiletest.Tensor{DType: safetensors.F32, Shape: shape, Data: make([]byte, n)}
	}
	values := map[string]any{"head_dim": rows, "temperature": 1.5, "option_isolation": false,
		"head": map[string]any{"q.weight": tensor(rows, columns), "k.weight": tensor(rows, columns),
			"q.bias": tensor(rows), "k.bias": tensor(rows)}}
	if values[key] = v; v == nil {
		delete(values, key)
	}
	return torchfiletest.EncodeNested(values)
}

// TestDecisionBase finds the base model of an adapter in the hub's cache, by the adapter's revision.
func TestDecisionBase(t *testing.T) {
	s := hftest.Lookup("nimble")
	dir, err := s.Write(t.TempDir(), s.All()[0])
	if err != nil {
		t.Fatal(err)
	}
	prepare := func(opt convert.Options) error {
		if !opt.MMProj {
			opt.Pre = s.PreTokenizer()
		}
		job, err := convert.Prepare(t.Context(), dir, opt)
		if err == nil {
			job.Close()
		}
		return err
	}
	if err := prepare(convert.Options{HubCache: s.Hub(dir)}); err != nil {
		t.Error(err)
	}
	if err := prepare(convert.Options{HubCache: t.TempDir()}); !errors.Is(err, fault.Usage) ||
		!strings.Contains(err.Error(), hftest.BaseID) {
		t.Errorf("%v, want an error that asks for %s", err, hftest.BaseID)
	}
	if err := prepare(convert.Options{HubCache: s.Hub(dir), MMProj: true}); !errors.Is(err, fault.Unsupported) {
		t.Errorf("%v, want an error that there is no vision or audio encoder", err)
	}
	for _, revision := range []string{"fedcba9876543210fedcba9876543210fedcba98", "../x"} {
		schema := `{"task": "schema_candidate_classification_v2", "revision": "` + revision + `"}`
		if err := os.WriteFile(filepath.Join(dir, "schema_config.json"), []byte(schema), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := prepare(convert.Options{HubCache: s.Hub(dir)}); err == nil ||
			!strings.Contains(err.Error(), revision) && !strings.Contains(err.Error(), hftest.BaseID) {
			t.Errorf("revision %s: %v, want an error", revision, err)
		}
	}
}
