package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"

	"ggforge/gguf"
	"ggforge/quants"
)

// The protocol: one JSON object a line on standard input, one answer a line on
// standard output. reference.py is the other server.
//
//	load        Input, Weights, RowLen: read the files
//	encode      ID, RowBytes, Importance: encode all rows once, keep and report the result
//	quantize    ID, Importance, Rows: encode Rows rows, from the first one on,
//	            again and again; calls get up to all rows of the input
//	dequantize  ID, Rows: the same for decoding what encode kept
//	zeros       Rows: the same for storing zeros where dequantize writes
//	chain       Rows: the same for one multiplication an element, each of the product before
//	spin        Rows: the same for spinSteps independent steps an element
//	validate    ID, Rows: the same for checking that what encode kept is finite
//
// Times are CPU seconds of the one thread that works.
type request struct {
	Op         string `json:"op"`
	Input      string `json:"input,omitempty"`      // file of float32
	Weights    string `json:"weights,omitempty"`    // file of float32, one per column
	RowLen     int    `json:"row_len,omitempty"`    // columns
	ID         int    `json:"id"`                   // tensor type
	RowBytes   int    `json:"row_bytes,omitempty"`  // of a row of that type
	Importance bool   `json:"importance,omitempty"` // give the encoder the weights
	Rows       int    `json:"rows,omitempty"`
}

type answer struct {
	Error          string  `json:"error,omitempty"`
	Width          int     `json:"width,omitempty"`          // load: bits of a vector, 0 for scalar
	Sum            string  `json:"sum,omitempty"`            // encode: sha256 of the blocks
	Decoded        string  `json:"decoded,omitempty"`        // encode: sha256 of the blocks decoded, "" without a decoder
	RMSE           float64 `json:"rmse,omitempty"`           // encode: relative to the root mean square of the input
	Implementation string  `json:"implementation,omitempty"` // encode: that of the encoder
	Seconds        float64 `json:"seconds,omitempty"`        // quantize, dequantize, validate; 0 if there is no such function
}

// serverArg makes this program a server.
const serverArg = "-server"

// server measures the kernels of its own process.
type server struct {
	x, weights []float32
	rowLen     int
	blocks     []byte // of encode
	typ        gguf.Type
	dst        []byte
	y          []float32
}

// serve answers requests until r ends.
func serve(r io.Reader, w io.Writer) error {
	runtime.LockOSThread()
	var s server
	in, out := bufio.NewScanner(r), json.NewEncoder(w)
	for in.Scan() {
		var req request
		err := json.Unmarshal(in.Bytes(), &req)
		var a answer
		if err == nil {
			a, err = s.answer(&req)
		}
		if err != nil {
			a = answer{Error: err.Error()}
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
	return in.Err()
}

func (s *server) answer(r *request) (a answer, err error) {
	c := quants.Lookup(gguf.Type(r.ID))
	var w []float32
	if r.Importance {
		w = s.weights
	}
	switch r.Op {
	case "load":
		s.rowLen, a.Width = r.RowLen, width()
		if s.x, err = readFloats(r.Input); err == nil {
			s.weights, err = readFloats(r.Weights)
		}
		if err == nil && (s.rowLen <= 0 || len(s.x) == 0 || len(s.x)%s.rowLen != 0 || len(s.weights) != s.rowLen) {
			err = fmt.Errorf("%d values and %d weights for rows of %d", len(s.x), len(s.weights), s.rowLen)
		}
		s.y = make([]float32, len(s.x))
		return a, err
	case "encode", "quantize", "dequantize", "zeros", "chain", "spin", "validate":
		if len(s.x) == 0 {
			return a, errors.New("nothing loaded")
		}
		if r.Op == "zeros" {
			a.Seconds, err = s.repeat(r.Rows, func(n int) error { clear(s.y[:n*s.rowLen]); return nil })
			return a, err
		}
		if f := loops[r.Op]; f != nil {
			a.Seconds, err = s.repeat(r.Rows,
				func(n int) error { runtime.KeepAlive(f(uint64(n * s.rowLen))); return nil })
			return a, err
		}
		if !c.CanQuantize() || !c.CanDequantize() {
			return a, fmt.Errorf("no codec for type %d", r.ID)
		}
	}
	switch r.Op {
	case "encode":
		s.typ = c.Type()
		s.blocks = make([]byte, s.rows()*s.rowBytes())
		s.dst = make([]byte, len(s.blocks))
		if err = c.Quantize(s.blocks, s.x, s.rowLen, w); err != nil {
			return a, err
		}
		if err = c.Dequantize(s.y, s.blocks); err != nil {
			return a, err
		}
		return answer{Sum: sum(s.blocks), Decoded: sum(bytesOf(s.y)), RMSE: relativeError(s.x, s.y),
			Implementation: c.Implementation(w != nil)}, nil
	case "quantize", "dequantize", "validate":
		if c.Type() != s.typ {
			return a, fmt.Errorf("%s %v after encode %v", r.Op, c.Type(), s.typ)
		}
		a.Seconds, err = s.repeat(r.Rows, func(n int) error {
			switch r.Op {
			case "quantize":
				return c.Quantize(s.dst[:n*s.rowBytes()], s.x[:n*s.rowLen], s.rowLen, w)
			case "dequantize":
				return c.Dequantize(s.y[:n*s.rowLen], s.blocks[:n*s.rowBytes()])
			}
			return c.Validate(s.blocks[:n*s.rowBytes()])
		})
		return a, err
	}
	return a, fmt.Errorf("unknown request %q", r.Op)
}

func (s *server) rows() int     { return len(s.x) / s.rowLen }
func (s *server) rowBytes() int { return int(s.typ.RowBytes(int64(s.rowLen))) }

// loops are simple loops, by operation, with which the instructions of kernels are compared.
var loops = map[string]func(n uint64) uint64{"chain": chain, "spin": spin}

// chainCycles is the latency of a multiplication of integers on all processors with vectors of 256 bits.
const chainCycles = 3

func chain(n uint64) uint64 {
	x := n | 1
	for range n {
		x *= x
	}
	return x
}

// spinSteps are the steps of spin in a pass.
const spinSteps = 12

func spin(n uint64) uint64 {
	var a, b, c, d, e, f uint64
	for i := range n {
		a += i
		b ^= i
		c += i
		d ^= i
		e += i
		f ^= i
		a ^= n
		b += n
		c ^= n
		d += n
		e ^= n
		f += n
	}
	return a + b + c + d + e + f
}

// repeat calls f for n rows in all and returns the seconds that took.
func (s *server) repeat(n int, f func(rows int) error) (float64, error) {
	startCount()
	defer stopCount()
	start := threadSeconds()
	for ; n > 0; n -= s.rows() {
		if err := f(min(n, s.rows())); err != nil {
			return 0, err
		}
	}
	return threadSeconds() - start, nil
}

func readFloats(path string) ([]float32, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	x := make([]float32, len(data)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return x, nil
}

func bytesOf(x []float32) []byte {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// relativeError returns the root mean square of y-x over that of x.
func relativeError(x, y []float32) float64 {
	var e, q float64
	for i := range x {
		d := float64(y[i]) - float64(x[i])
		e += d * d
		q += float64(x[i]) * float64(x[i])
	}
	return math.Sqrt(e / q)
}
