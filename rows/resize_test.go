package rows

import (
	"errors"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

// TestResize resizes square grids: a new point that is on an old one gets its row, a point between others their mean.
func TestResize(t *testing.T) {
	const n = 8
	square := func(side int64) Source {
		x := make([]float32, side*side*n)
		for i := range x {
			x[i] = float32(i/n) + float32(i%n)/16
		}
		s, err := Reshape(Float32s(x), []int64{n, side * side})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		side, to int64
		want     []float32 // the first number of each row
	}{
		{3, 2, []float32{0, 2, 6, 8}},
		{2, 3, []float32{0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3}},
		{4, 1, []float32{0}},
		{1, 2, []float32{0, 0, 0, 0}},
		{2, 2, []float32{0, 1, 2, 3}},
	} {
		s, err := Resize(square(c.side), c.side, c.to)
		if err != nil {
			t.Fatal(err)
		}
		rows := c.to * c.to
		if s.NE()[0] != n || gguf.Rows(s.NE()) != rows {
			t.Fatalf("%d to %d: dimensions %v", c.side, c.to, s.NE())
		}
		x := make([]float32, n)
		for i := range rows { // each row alone
			if err := Decode(s, x, new([]byte), i, i+1); err != nil {
				t.Fatal(err)
			}
			for j, v := range x {
				if want := c.want[i] + float32(j)/16; v != want {
					t.Errorf("%d to %d: row %d: %v at %d, want %v", c.side, c.to, i, v, j, want)
				}
			}
		}
	}
	if _, err := Resize(square(3), 2, 4); !errors.Is(err, fault.Broken) {
		t.Errorf("nine rows as a square of 2: %v", err)
	}
	narrow, err := Reshape(Float32s(make([]float32, 9*4)), []int64{4, 9})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Resize(narrow, 3, 2); !errors.Is(err, fault.Unsupported) {
		t.Errorf("rows of 4 numbers: %v", err)
	}
}
