package cli

import (
	"bytes"
	"os"
	"strconv"
)

// memory returns the anonymous and shared resident memory of this process in
// bytes, from /proc.
func memory() int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return heap()
	}
	var sum int64
	for line := range bytes.Lines(data) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if n := string(name); n == "RssAnon" || n == "RssShmem" {
			kb, _ := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB"))), 10, 64)
			sum += kb << 10
		}
	}
	return sum
}
