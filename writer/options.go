package writer

import (
	"runtime"
	"time"

	"ggforge/gguf"
	"ggforge/model/digest"
)

// Options are the options of a write.
type Options struct {
	Workers int  // 0 means one per CPU
	Force   bool // replace an existing file
	// MakeDir, unless empty, is a directory for the outputs. It is created with its parents, and removed if the write
	// fails.
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
	// Own are files that the run itself creates and reads: no output may replace one of them, but they are not inputs
	// that decide the bytes.
	Own []string
	// Journal, unless nil, makes the write resumable.
	Journal *Journal
	// Verify reads the files back from the disk before they are renamed, and compares their rows with checksums that
	// were taken before they were written. Rows of parts or of an interrupted run are compared with the inputs, too:
	// sources are read once more, except those of servers, and rows made from a different model are an error of kind
	// fault.Refused. Verify needs a Journal.
	Verify bool
	// Check, if set, is called when all files are complete and on disk, before any of them is renamed. Its error ends
	// the write, and temporary files are removed: the place to check that the inputs have not changed.
	Check func() error
	// Ready, if set, is called after Check with sizes and sums of the files under their final names. Its error ends the
	// write like that of Check. A record that it writes lets a later run identify the files even if this one is killed
	// between renames. A part of a write (Journal.Part) renames nothing and does not call it.
	Ready func(files []digest.File) error
	// Progress, if set, is called from one goroutine: at the start of each tensor, a few times a second between, and
	// once at the end, also after an error.
	Progress func(Progress)

	step func(string) error // called before each step of a commit; for tests
}

// workers returns the number of goroutines that do the work.
func (o *Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// Progress is the progress of a write.
type Progress struct {
	// Begun is set at the start of a tensor. Tensor and Index are those of the tensor started last.
	Begun bool
	// Last is set in the last call: all data are written if Done is Total, else an error has ended the write.
	Last   bool
	Files  []string // of the write, under their final names
	Tensor string
	Index  int         // of Tensors
	Types  []gguf.Type // that the tensor becomes, one per output
	Bytes  int64       // that it has in all outputs

	Tensors     int
	Done, Total int64 // bytes of tensor data written, and to write
	// Work is the share of the work that is done, from 0 to 1, weighted by the cost of each type.
	Work float64
	// Elapsed is the time since the first tensor, Remaining an estimate of the time to the end, 0 while unknown.
	Elapsed, Remaining time.Duration
}

// Result describes the written files of one output.
type Result struct {
	Files     []string // paths
	Bytes     int64    // size of the files
	DataBytes int64    // of the tensors alone, padding not counted
	Elements  int64

	// Overflows counts blocks with an infinity that their source does not have: elements for plain types.
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
