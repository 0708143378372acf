package interop

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	"ggforge/test/hftest"
)

// imageErrors has, by spec, a part of the error with which the runtime ends on an image; none for specs with which it
// succeeds.
var imageErrors = map[string]string{
	// images are cut into tiles, which need tokens that the language model here lacks
	"mm_idefics3":       "GGML_ASSERT(idx >= 0) failed",
	"mm_smolvlm":        "GGML_ASSERT(idx >= 0) failed",
	"mm_cohere2_vision": "GGML_ASSERT(idx >= 0) failed", "mm_minicpmv4_6": "GGML_ASSERT(idx >= 0) failed",
	"mm_minicpmv4_7": "GGML_ASSERT(idx >= 0) failed",
	"mm_step3_vl":    "GGML_ASSERT(idx >= 0) failed", "mm_step3p7": "GGML_ASSERT(idx >= 0) failed",
	// positions of images have axes that the language model here lacks
	"mm_hunyuan_vl": "GGML_ASSERT(n_tokens == (size_t)image_tokens->n_tokens()) failed",
	// DeepStack makes the output of the vision encoder wider than that of the audio encoder
	"mm_qwen3_omni_moe":  "mismatch between vision and audio mmproj (n_embd_v = 192, n_embd_a = 64)",
	"mm_qwen3_omni_bare": "mismatch between vision and audio mmproj (n_embd_v = 192, n_embd_a = 64)",
	// DeepStack makes the output wider than the language model here
	"mm_granite_vision": "mismatch between text model (n_embd = 64) and mmproj (n_embd = 512)",
	"mm_qwen3_vl":       "mismatch between text model (n_embd = 64) and mmproj (n_embd = 192)",
}

// audioErrors is imageErrors for audio.
var audioErrors = map[string]string{
	// the runtime supports only the published widths: positions of 512 values, frames of 640 samples
	"mm_lfm2_audio":      "GGML_ASSERT(ggml_can_mul_mat(a, b)) failed",
	"mm_d1_omni":         "GGML_ASSERT(ggml_can_mul_mat(a, b)) failed",
	"mm_gemma4_unified":  "GGML_ASSERT(ggml_can_mul_mat(a, b)) failed",
	"mm_gemma3n":         "This model does not support audio input",
	"mm_gemma3n_norms":   "This model does not support audio input",
	"mm_qwen3_omni_moe":  "mismatch between vision and audio mmproj (n_embd_v = 192, n_embd_a = 64)",
	"mm_qwen3_omni_bare": "mismatch between vision and audio mmproj (n_embd_v = 192, n_embd_a = 64)",
	// its width is that of its own language model, with which generateSpeech runs it
	"mm_pocket_tts": "mismatch between text model (n_embd = 64) and mmproj (n_embd = 128)",
	// for 30 seconds the runtime expects one token less than its graph outputs
	"mm_ultravox": "expected output 187 tokens, got 188", "mm_voxtral": "expected output 187 tokens, got 188",
}

// TestTowers converts vision and audio encoders with the built command. The files must equal the goldens, and
// the runtime must encode an image and a sound with them, next to a small language model, or generate speech.
// The second table in docs/architectures.md must have these results; rows of tables of which some specs were skipped
// are left as they are.
func TestTowers(t *testing.T) {
	start(t)
	text := hftest.Lookup("qwen2")
	v := text.All()[0]
	_, err := text.Write(root+work+"/specs/"+v.Name, v)
	must(t, err)
	convertBy(t, root+work+"/specs/"+v.Name+"/"+text.Name, root+work+"/text.gguf", v.Out, text.PreTokenizer())
	writePicture(t)
	must(t, os.WriteFile(root+work+"/sound.wav", wave(), 0o666))
	results, left := map[string]*result{}, map[string]int{}
	for _, s := range hftest.Encoders() {
		a, err := arch.LookupEncoder(s.Class())
		if err != nil {
			continue // the class has no table yet
		}
		key := strings.Join(slices.Sorted(slices.Values(a.Classes)), ", ")
		if left[key]++; results[key] == nil {
			results[key] = newResult()
		}
		t.Run(s.Name, func(t *testing.T) {
			r := results[key]
			var g hftest.Golden
			for i, v := range s.All() {
				_, err := s.Write(root+work+"/specs/"+v.Name, v)
				must(t, err)
				dir, out := root+work+"/specs/"+v.Name+"/"+s.Name, work+"/tower.gguf"
				convertBy(t, dir, root+out, v.Out, "", append([]string{"--compat", "reference"}, v.Flags...)...)
				must(t, g.Add(v, root+out))
				if i == 0 && s.NoLoad == "" {
					convertBy(t, dir, root+out, v.Out, "", v.Flags...)
					for _, task := range []struct {
						name, end string
						try       func() (bool, error)
					}{
						{"image", imageErrors[s.Name], func() (bool, error) {
							return encodeInput(out, "vision", "--image", "picture.png", imageErrors[s.Name])
						}},
						{"audio", audioErrors[s.Name], func() (bool, error) {
							return encodeInput(out, "audio", "--audio", "sound.wav", audioErrors[s.Name])
						}},
						{"speech", "", func() (bool, error) { return generateSpeech(t, s, out) }},
					} {
						able, err := task.try()
						must(t, err)
						if task.end != "" {
							task.name += " up to an error" + note("`"+task.end+"`")
						}
						if able {
							r.loads[task.name] = true
						}
					}
				}
				if s.NoReference == "" {
					r.files++
				}
			}
			want, err := os.ReadFile(filepath.Join(archGoldens, s.Name+".txt"))
			must(t, err)
			if g.String() != string(want) {
				t.Errorf("not the reference's file; go test ./convert shows the difference")
			}
			if s.NoLoad != "" {
				r.notLoaded[s.Name] = s.NoLoad
			}
			if s.NoReference != "" {
				r.noReference[s.Name] = s.NoReference
			}
			left[key]--
		})
	}
	if t.Failed() {
		return
	}
	old, err := os.ReadFile(tableFile)
	must(t, err)
	models, encoders, _ := strings.Cut(string(old), encodersTitle)
	now := encodersPart(results, left, encoders)
	if *docs {
		must(t, os.WriteFile(tableFile, []byte(models+encodersTitle+now), 0o666))
	} else if encoders != now {
		t.Errorf("the second table of %s differs from these results: run make architectures", tableFile)
	}
}

// generateSpeech has the runtime generate speech with a multimodal projector, a path in the chroot, and the language model of
// the spec that has its name without mm_. able is false for a file without an audio decoder.
func generateSpeech(t *testing.T, s *hftest.Spec, path string) (able bool, err error) {
	data, err := os.ReadFile(root + path)
	if err != nil {
		return false, err
	}
	if !bytes.Contains(data[:min(len(data), 1<<14)], []byte("clip.has_gen_audio_encoder")) {
		return false, nil
	}
	text := hftest.Lookup(strings.TrimPrefix(s.Name, "mm_"))
	v := text.All()[0]
	dir, err := text.Write(root+work+"/specs/"+v.Name, v)
	if err != nil {
		return false, err
	}
	convertBy(t, dir, root+work+"/speaks.gguf", v.Out, text.PreTokenizer())
	os.Remove(root + work + "/spoken.wav")
	log, err := exec.Command("chroot", root, "timeout", "60", "llama-tts", "-m", work+"/speaks.gguf", "-mm", path,
		"-p", "a b c", "-o", work+"/spoken.wav",
		"-n", "3", "-t", "1", "--no-repack").CombinedOutput()
	if err != nil {
		return false, fmt.Errorf("the runtime cannot speak with the file: %w\n%s", err, tail(log))
	}
	_, err = os.Stat(root + work + "/spoken.wav")
	return err == nil, err
}

// TestMistralTower compares vision encoders in Mistral's own format with the reference's files.
func TestMistralTower(t *testing.T) {
	o := start(t)
	text := hftest.Lookup("qwen2")
	v := text.All()[0]
	_, err := text.Write(root+work+"/specs/"+v.Name, v)
	must(t, err)
	convertBy(t, root+work+"/specs/"+v.Name+"/"+text.Name, root+work+"/text.gguf", v.Out, text.PreTokenizer())
	writePicture(t)
	for _, c := range []struct {
		name, out string
		change    func(vision map[string]any)
	}{
		{"as published", "f16", func(map[string]any) {}},
		{"token by tekken.json", "q8_0", func(vision map[string]any) { vision["image_break_token_id"] = -1 }},
		{"without merger", "bf16", func(vision map[string]any) { delete(vision, "mm_projector_id") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			vision := hftest.MistralVision()
			c.change(vision)
			dir, ours, theirs := work+"/Tiny-Mistral", work+"/tower.gguf", work+"/theirs.gguf"
			must(t, os.RemoveAll(root+dir))
			must(t, os.MkdirAll(root+dir, 0o777))
			must(t, hftest.WriteMistral(root+dir, map[string]any{"vision_encoder": vision}))
			must(t, o.try(t, "refconvert.py", dir, theirs, "--outtype", c.out, "--quiet", "--",
				"--mistral-format", "--mmproj"))
			convertBy(t, root+dir, root+ours, c.out, "", "--mistral-format", "--mmproj")
			same(t, root+ours, root+theirs)
			_, err := encodeInput(ours, "vision", "--image", "picture.png", "")
			must(t, err)
		})
	}
}

// TestMistralExperts compares MoE models in Mistral's own format with the reference's files, except for the keys of the
// tokenizer, which the reference cannot write without mistral-common.
func TestMistralExperts(t *testing.T) {
	o := start(t)
	for _, c := range []struct {
		name, out string
		change    func(params map[string]any)
	}{
		{"as published", "f16", func(map[string]any) {}},
		{"another length of heads", "q8_0", func(params map[string]any) {
			params["head_dim"] = nil
			delete(params, "llama_4_scaling")
			params["moe"].(map[string]any)["routed_scale"] = 1
		}},
		{"as stored", "auto", func(params map[string]any) { params["tied_embeddings"] = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := hftest.MistralExperts()
			c.change(params)
			dir, ours, theirs := work+"/Tiny-Mistral", work+"/experts.gguf", work+"/theirs.gguf"
			must(t, os.RemoveAll(root+dir))
			must(t, os.MkdirAll(root+dir, 0o777))
			must(t, hftest.WriteMistral(root+dir, params))
			must(t, os.WriteFile(root+dir+"/config.json", []byte(`{}`), 0o666)) // the reference opens it
			must(t, o.try(t, "refconvert.py", dir, theirs, "--outtype", c.out, "--quiet", "--", "--mistral-format"))
			convertBy(t, root+dir, root+ours, c.out, "", "--mistral-format")
			var text [2]string
			for i, file := range []string{ours, theirs} {
				var g hftest.Golden
				must(t, g.Add(hftest.Variant{Name: "experts"}, root+file))
				for line := range strings.Lines(g.String()) {
					if !strings.HasPrefix(line, "tokenizer.") && !strings.HasPrefix(line, "= ") {
						text[i] += line
					}
				}
			}
			if text[0] != text[1] || !strings.Contains(text[0], "blk.2.ffn_gate_exps.weight") {
				t.Errorf("ours:\n%s\ntheirs:\n%s", text[0], text[1])
			}
		})
	}
}

// writePicture writes a grey picture into the chroot.
func writePicture(t *testing.T) {
	t.Helper()
	var b bytes.Buffer
	must(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 112, 112))))
	must(t, os.WriteFile(root+work+"/picture.png", b.Bytes(), 0o666))
}

// encodeInput has the runtime encode an image or a sound with a multimodal projector, a path in the chroot. modality is
// "vision" or "audio"; able is false for a file without such an encoder. end is a part of the error with which the
// runtime has to end, "" for none.
func encodeInput(path, modality, flag, input, end string) (able bool, err error) {
	f, err := os.ReadFile(root + path)
	if err != nil {
		return false, err
	}
	if !bytes.Contains(f[:min(len(f), 1<<14)], []byte("clip.has_"+modality+"_encoder")) {
		if end != "" {
			return false, fmt.Errorf("the file has no %s encoder", modality)
		}
		return false, nil
	}
	var text []byte
	for range 5 { // it may end before its last message is out
		text, err = exec.Command("chroot", root, "timeout", "20", "llama-mtmd-cli", "-m", work+"/text.gguf", "--mmproj",
			path, flag, work+"/"+input,
			"-p", "a", "-n", "2", "-t", "1", "-c", "4096", "--no-warmup", "--no-repack", "--chat-template",
			"chatml").CombinedOutput()
		if err != nil && end != "" && strings.Contains(string(text), end) {
			return true, nil
		}
		if err == nil || end == "" {
			break
		}
	}
	switch {
	case end != "":
		return false, fmt.Errorf("%s: the runtime's log lacks %q: %v\n%s", modality, end, err, tail(text))
	case err != nil:
		return false, fmt.Errorf("%s: the runtime cannot use the file: %w\n%s", modality, err, tail(text))
	}
	return true, nil
}

// wave returns a WAV file with one second of a tone: 16000 samples of 16 bits.
func wave() []byte {
	const rate = 16000
	b := []byte("RIFF")
	b = binary.LittleEndian.AppendUint32(b, 36+2*rate)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	for _, n := range []uint16{1, 1} { // PCM, one channel
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, 2*rate)
	for _, n := range []uint16{2, 16} { // bytes per frame, bits per sample
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, 2*rate)
	for i := range rate {
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(8000*math.Sin(float64(i)*2*math.Pi*440/rate))))
	}
	return b
}
