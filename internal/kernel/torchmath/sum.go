package torchmath

import "math/bits"

const (
	sumLanes  = 8 // float32 in 256 bits
	sumILP    = 4
	sumRow    = sumILP * sumLanes
	sumLevels = 4
)

// Sum adds float32 numbers in the order of PyTorch's sum of a contiguous tensor
// on one thread with vectors of 256 bits: in lanes, 32 of them, whose sums go up
// a cascade of four levels. Source: SumKernel.cpp of ATen (torch 2.14), compared
// with torch.sum for 4096 to 197525 elements; with several threads PyTorch cuts
// tensors of 32768 elements and more into as many parts, and gets other bits.
type Sum struct {
	rows, row int // of 32 elements: all, those added
	power     int
	acc       [sumLevels][sumRow]float32
	pending   []float32 // elements of a row that is not whole yet
}

// NewSum returns the sum of n elements, none of which is added yet.
func NewSum(n int64) *Sum {
	rows := int(n / sumRow)
	log2 := 0
	if rows > 1 {
		log2 = bits.Len(uint(rows - 1)) // rounded up
	}
	return &Sum{rows: rows, power: max(4, log2/sumLevels)}
}

// Add adds the next elements.
func (s *Sum) Add(x []float32) {
	for len(x) > 0 {
		if len(s.pending) == 0 && len(x) >= sumRow && s.row < s.rows {
			s.add(x[:sumRow])
			x = x[sumRow:]
			continue
		}
		n := min(sumRow-len(s.pending), len(x))
		s.pending = append(s.pending, x[:n]...)
		x = x[n:]
		if len(s.pending) == sumRow && s.row < s.rows {
			s.add(s.pending)
			s.pending = s.pending[:0]
		}
	}
}

func (s *Sum) add(x []float32) {
	for i, v := range x[:sumRow] {
		s.acc[0][i] += v
	}
	s.row++
	if s.row&(1<<s.power-1) != 0 {
		return
	}
	for j := 1; j < sumLevels; j++ {
		for i := range sumRow {
			s.acc[j][i] += s.acc[j-1][i]
			s.acc[j-1][i] = 0
		}
		if s.row>>(j*s.power)&(1<<s.power-1) != 0 {
			break
		}
	}
}

// Value returns the sum. All n elements must have been added, and none may be
// added afterwards.
func (s *Sum) Value() float32 {
	for j := 1; j < sumLevels; j++ {
		for i := range sumRow {
			s.acc[0][i] += s.acc[j][i]
		}
	}
	lanes := s.acc[0]
	rest := s.pending
	for ; len(rest) >= sumLanes; rest = rest[sumLanes:] {
		for i, v := range rest[:sumLanes] {
			lanes[i] += v
		}
	}
	for k := 1; k < sumILP; k++ {
		for i := range sumLanes {
			lanes[i] += lanes[k*sumLanes+i]
		}
	}
	sum := float32(0)
	for _, v := range rest {
		sum += v
	}
	for _, v := range lanes[:sumLanes] {
		sum += v
	}
	return sum
}
