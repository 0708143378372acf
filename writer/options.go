package writer

import (
	"runtime"
	"time"

	"ggforge/gguf"
	"ggforge/model/digest"
)

// Options says how to write.
type Options struct {
	Workers int  // 0 means one per CPU
	Force   bool // replace an existing file
	// MakeDir, unless empty, is a directory for the outputs. It is made, and those
	// that it is in, and goes again if the write fails.
	MakeDir string
	// Inputs are the files that the run reads: an output that would replace one of
	// them is an error of kind fault.Usage, also with Force.
	Inputs []string
	// AllowOverflow lets finite weights become infinite in a narrower type, as
	// the reference's converter does; they are counted in the Result. Without it
	// they are an error.
	AllowOverflow bool
	// MaxBuffer bounds the buffers of all workers together, in bytes; 0 means
	// 96 MiB, which more than some 20 workers reach. A worker holds one row at
	// least.
	MaxBuffer int64
	// Own are files that the run itself makes and reads: no output may replace one of them,
	// but they do not decide what the bytes are.
	Own []string
	// Journal, unless nil, makes the write one that can be continued.
	Journal *Journal
	// Verify reads the files back from the disk before they take their names, and compares
	// their rows with checksums that were taken before they were written. Rows that parts or an interrupted run
	// have written are compared with the inputs, too: sources are read once more, except those of servers, and
	// rows that were made of others are an error of kind fault.Refused. It needs a Journal.
	Verify bool
	// Check, if set, is called when all files are whole and on disk, before any of
	// them takes its name. Its error ends the write, and nothing is left behind:
	// the place to see whether the inputs are still what they were.
	Check func() error
	// Ready, if set, is called after Check with the files as they will be: their names are the paths that they are
	// about to take. Its error ends the write as that of Check does. What it keeps on disk lets a later run know
	// the files again, at whichever rename this one is killed. A part of a write (Journal.Part) renames nothing and
	// does not call it.
	Ready func(files []digest.File) error
	// Progress, if set, is called from one goroutine: when a tensor's turn comes, a
	// few times a second between that, and once at the end, also after an error.
	Progress func(Progress)

	step func(string) error // called before each step of a commit; for tests
}

// workers returns how many goroutines do the work.
func (o *Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// Progress is how far a write has come.
type Progress struct {
	// Begun is set when a tensor's turn comes; Tensor and Index are then about it,
	// otherwise about the one begun last.
	Begun bool
	// Last is set in the last call: all data are written if Done is Total, else
	// an error has ended the writing.
	Last   bool
	Files  []string // that are written, under their final names
	Tensor string
	Index  int         // of Tensors
	Types  []gguf.Type // that the tensor becomes, one per output
	Bytes  int64       // that it has in all outputs

	Tensors     int
	Done, Total int64 // bytes of tensor data written, and to write
	// Work is the share of the work that is done, from 0 to 1, where the bytes of
	// each type count as much as they take to make.
	Work float64
	// Elapsed is the time since the first tensor, Remaining an estimate of the time
	// to the last; it is 0 as long as there is nothing to go by.
	Elapsed, Remaining time.Duration
}

// Result is what was written.
type Result struct {
	Files     []string // paths
	Bytes     int64    // size of the files
	DataBytes int64    // of the tensors alone, padding not counted
	Elements  int64

	// Overflows counts blocks that hold an infinity which their source does not:
	// elements for plain types.
	Overflows []Count
	// Displaced counts the sub-blocks of zeros that make superblocks decode wrongly: see
	// quants.Codec.DisplacedSubBlocks.
	Displaced []Count
}

// Count is a number of blocks of one tensor.
type Count struct {
	Tensor string
	Type   gguf.Type
	Blocks int64
}
