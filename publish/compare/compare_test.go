package compare_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"reflect"
	"slices"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/imatrix/imatrixtest"
	"ggforge/model"
	"ggforge/publish/compare"
	"ggforge/rows"
)

func tensor(name string, values []float32, ne ...int64) model.Tensor {
	b := make([]byte, 0, 4*len(values))
	for _, v := range values {
		u := math.Float32bits(v)
		b = append(b, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
	}
	return model.New(name, rows.Stored(ne, gguf.TypeF32, b, nil))
}

func Example() {
	base := &model.Model{Tensors: []model.Tensor{tensor("a", []float32{3, 4}, 2)}}
	other := &model.Model{Tensors: []model.Tensor{tensor("a", []float32{3, 4.5}, 2)}}
	r, err := compare.Compare(context.Background(), base, other, compare.Options{})
	if err != nil {
		log.Fatal(err)
	}
	t := &r.Tensors[0]
	fmt.Printf("%s: RMSE %.4f, relative %.2f, largest %.1f in column %d\n", t.Name, t.RMSE(), t.Relative(),
		t.Max, t.Column)
	// Output: a: RMSE 0.3536, relative 0.10, largest 0.5 in column 1
}

// TestCompare compares figures with those of plain loops, with importance per matrix, and for
// any number of workers.
func TestCompare(t *testing.T) {
	const n, per, matrices = 700, 300, 3
	var x, y []float32
	seed := uint32(1)
	next := func() float32 {
		seed = seed*1664525 + 1013904223
		return float32(int32(seed)) / (1 << 31)
	}
	for range n * per * matrices {
		v := next()
		x, y = append(x, v), append(y, v+next()/16)
	}
	y[(2*per+7)*n+13] += 5
	sums, weights := make([]float32, n*matrices), make([]float32, n*matrices)
	for i := range sums {
		sums[i] = float32(1 + i*7%11)
		weights[i] = sums[i] / float32(i/n+1)
	}
	m, err := imatrix.Parse("im",
		imatrixtest.GGUF([]imatrixtest.Entry{{Name: "w", Sums: sums, Counts: []float32{1, 2, 3}}}, nil, 1))
	if err != nil {
		t.Fatal(err)
	}
	base := &model.Model{Path: "base", Tensors: []model.Tensor{tensor("gone", []float32{1}, 1),
		tensor("w", x, n, per, matrices), tensor("b", x[:9], 9)}}
	other := &model.Model{Path: "other", Tensors: []model.Tensor{tensor("b", x[:9], 9), tensor("new", []float32{1}, 1),
		tensor("w", y, n, per, matrices)}}
	var first *compare.Result
	for _, workers := range []int{1, 3} {
		r, err := compare.Compare(t.Context(), base, other, compare.Options{Workers: workers, Matrix: m})
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !reflect.DeepEqual(r, first) {
			t.Errorf("other figures with %d workers", workers)
		}
		first = r
	}
	if !slices.Equal(first.Missing, []string{"gone"}) || !slices.Equal(first.Added, []string{"new"}) ||
		len(first.Tensors) != 2 {
		t.Fatalf("%+v", first)
	}
	var xx, ee, xy, yy, wx, we float64
	for i, v := range x {
		u, w := float64(v), float64(y[i])
		imp := float64(weights[i/(n*per)*n+i%n])
		xx, ee, xy, yy = xx+u*u, ee+(w-u)*(w-u), xy+u*w, yy+w*w
		wx, we = wx+imp*u*u, we+imp*(w-u)*(w-u)
	}
	w := &first.Tensors[1]
	for name, v := range map[string][2]float64{
		"RMSE": {w.RMSE(), math.Sqrt(ee / float64(len(x)))}, "relative": {w.Relative(), math.Sqrt(ee / xx)},
		"weighted": {w.Weighted(), math.Sqrt(we / wx)},
		"SQNR":     {w.SQNR(), 10 * math.Log10(xx/ee)}, "cosine": {w.Cosine(), xy / math.Sqrt(xx*yy)},
		"BPW": {w.BPW(), 32},
	} {
		if math.Abs(v[0]-v[1]) > 1e-9*v[1] {
			t.Errorf("%s: %v, want %v", name, v[0], v[1])
		}
	}
	if w.Column != 13 || w.Row != 2*per+7 || w.Max < 4.9 {
		t.Errorf("the largest error is %v at %d, %d", w.Max, w.Column, w.Row)
	}
	if b := &first.Tensors[0]; b.RMSE() != 0 || !math.IsInf(b.SQNR(), 1) || !math.IsNaN(b.Weighted()) {
		t.Errorf("the same: %+v", b)
	}

	y[0] = float32(math.NaN())
	bad := &model.Model{Tensors: []model.Tensor{tensor("w", y, n, per, matrices)}}
	if _, err := compare.Compare(t.Context(), base, bad, compare.Options{}); !errors.Is(err, fault.Broken) {
		t.Errorf("not finite: %v", err)
	}
	wide := &model.Model{Tensors: []model.Tensor{tensor("w", y, n*per, matrices)}}
	if _, err := compare.Compare(t.Context(), base, wide, compare.Options{}); !errors.Is(err, fault.Refused) {
		t.Errorf("other dimensions: %v", err)
	}
}

// TestCompareDimensions compares tensors whose dimensions differ: by ones at the end, which mean nothing, and otherwise.
// Tensors without elements have no errors.
func TestCompareDimensions(t *testing.T) {
	one := func(ne ...int64) *model.Model {
		return &model.Model{Tensors: []model.Tensor{tensor("a", make([]float32, 4), ne...), tensor("e", nil, 0)}}
	}
	for _, ne := range [][]int64{{4}, {4, 1}, {4, 1, 1}} {
		r, err := compare.Compare(t.Context(), one(4, 1), one(ne...), compare.Options{})
		if err != nil || len(r.Tensors) != 1 {
			t.Errorf("%v: %v", ne, err)
		}
	}
	for _, ne := range [][]int64{{2, 2}, {1, 4}} {
		if _, err := compare.Compare(t.Context(), one(4, 1), one(ne...), compare.Options{}); !errors.Is(err, fault.Refused) {
			t.Errorf("%v: %v", ne, err)
		}
	}
}
