package writer

import (
	"context"
	"path/filepath"
	"testing"

	"ggforge/rows"
)

func TestProgress(t *testing.T) {
	f := testFile(filepath.Join(t.TempDir(), "out.gguf"))
	var started []string
	var last Progress
	if _, err := Write(context.Background(), f, Options{Workers: 3, Progress: func(p Progress) {
		if p.Begun {
			started = append(started, p.Tensor)
			if p.Index != len(started)-1 || len(p.Types) != 1 || p.Bytes == 0 {
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
	if len(started) != len(f.Tensors) || last.Begun || last.Work != 1 || last.Remaining != 0 ||
		last.Done != last.Total {
		t.Errorf("%v, last %+v", started, last)
	}
}

// TestReadWork checks that the cost of a source counts once, however many outputs it has.
func TestReadWork(t *testing.T) {
	f := testFile(filepath.Join(t.TempDir(), "out.gguf"))
	f.Tensors[1].Source = &expensive{f.Tensors[1].Source, 1e6}
	done := 0.0 // share of the work when the fourth tensor begins
	if _, err := Write(context.Background(), f, Options{Workers: 1, Progress: func(p Progress) {
		if p.Begun && p.Index == 3 { // two blocks of the third may be on their way
			done = p.Work
		}
		if p.Work > 1 {
			t.Errorf("%+v", p)
		}
	}}); err != nil {
		t.Fatal(err)
	}
	if done < 0.9 {
		t.Errorf("%.2f of the work done after the tensor that makes nearly all of it", done)
	}
}

type expensive struct {
	rows.Source
	cost int64
}

func (e *expensive) Cost() int64 { return e.cost }
