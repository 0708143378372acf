package toktest

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// Golden has the library's results with one tokenizer.
type Golden struct {
	Fingerprint string   // hash of the ids of the reference's check text
	Chunks      []string // for each ChunkLines lines a hash of the ids and one of the decoded text
}

// The lines that goldens are made from.
const (
	GoldenSeed  = 1
	GoldenLines = 26000
	ChunkLines  = 1000
)

// Encoder is the encoder under test.
type Encoder interface {
	Encode(text string, special bool) ([]int, error)
	Decode(ids []int) (string, error)
}

// Chunk returns the hashes of at most ChunkLines lines.
func Chunk(e Encoder, lines []string) (string, error) {
	ids, texts := sha256.New(), sha256.New()
	for _, line := range lines {
		list, err := e.Encode(line, true)
		if err != nil {
			return "", err
		}
		var b []byte
		for i, id := range list {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(id), 10)
		}
		ids.Write(append(b, '\n'))
		text, err := e.Decode(list)
		if err != nil {
			return "", err
		}
		texts.Write(append([]byte(text), 0))
	}
	return hex.EncodeToString(ids.Sum(nil))[:16] + " " + hex.EncodeToString(texts.Sum(nil))[:16], nil
}
