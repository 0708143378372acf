package writer

import (
	"context"
	"path/filepath"
	"testing"
)

func TestProgress(t *testing.T) {
	f := testFile(filepath.Join(t.TempDir(), "out.gguf"))
	var begun []string
	var last Progress
	if _, err := Write(context.Background(), f, Options{Workers: 3, Progress: func(p Progress) {
		if p.Begun {
			begun = append(begun, p.Tensor)
			if p.Index != len(begun)-1 || len(p.Types) != 1 || p.Bytes == 0 {
				t.Errorf("%+v", p)
			}
		}
		if p.Work < last.Work || p.Done < last.Done || p.Elapsed < last.Elapsed || p.Work > 1 {
			t.Errorf("%+v after %+v", p, last)
		}
		last = p
	}}); err != nil {
		t.Fatal(err)
	}
	if len(begun) != len(f.Tensors) || last.Begun || last.Work != 1 || last.Remaining != 0 || last.Done != last.Total {
		t.Errorf("%v, last %+v", begun, last)
	}
}
