package convert_test

import (
	"testing"

	"ggforge/convert"
	"ggforge/internal/hftest"
)

// TestReference converts a model that the reference writes without a key that its
// runtime needs.
func TestReference(t *testing.T) {
	s := hftest.Lookup("exaone")
	dir, err := s.Write(t.TempDir(), s.All()[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, reference := range []bool{false, true} {
		job, err := convert.Prepare(t.Context(), dir, convert.Options{Pre: s.PreTokenizer(), Reference: reference})
		if err != nil {
			t.Fatal(err)
		}
		v, ok := job.Metadata().Get("exaone.attention.layer_norm_rms_epsilon")
		if eps, _ := v.Float(); ok == reference || ok && float32(eps) != 1e-5 {
			t.Errorf("like the reference %v: the key is there %v with %v", reference, ok, eps)
		}
		job.Close()
	}
}
