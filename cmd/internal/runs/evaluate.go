package runs

import (
	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/eval"
	"ggforge/eval/texts"
	"ggforge/fault"
)

// Input holds the settings of all verbs of ggeval: a text, and how to run models over it.
type Input struct {
	File   string // the text
	Source string // for an encoder-decoder: its line i is what line i of File is the target of; or ""
	// FileName and SourceName are File and Source as the user has named them: these may be copies of files on servers.
	FileName, SourceName string
	Escapes              bool
	Text                 eval.Text
	Cache                eval.Cache // of models, where it is not that of F32
	// Chats makes texts of the conversations that File has; nil if it is a text. With Stream they are one text, in chunks
	// of Text.Chunk tokens. Otherwise each is a sequence of its own, Answers asks for the tokens of the assistant instead
	// of all, and Most is the largest number of tokens of a conversation, 0 for any.
	Chats   *texts.ChatOptions
	Stream  bool
	Most    int
	Workers int
	JSON    bool
	Show    func(tool.Work) // progress, or nil
	Checkpoint
}

// EvaluateFlags returns the flags of Input and those of a verb.
func EvaluateFlags(verb ...tool.Flag) []tool.Flag {
	list := tool.Group(CategoryText,
		tool.Shared("file", "the text is in `FILE`").OrRemote(),
		tool.Shared("escape",
			`expand \n, \t, \r, \", \', \\ and \xHH in the text`),
		tool.Shared("no-escape", "do not expand escapes (the default)"),
		tool.Shared("ctx-size", "cut the text into chunks of `N` tokens"),
		tool.Shared("chunks", "take the first `N` chunks (0: all)"),
	)
	return append(append(list, tool.Group(tool.CategoryOutput, verb...)...), ModelFlags()...)
}

// CategoryText is the heading of the flags about the text.
const CategoryText = "Text"

// ModelFlags returns the flags about how models are read and run.
func ModelFlags() []tool.Flag {
	return append([]tool.Flag{
		tool.JSONFlag(),
		tool.ThreadsFlag(),
		tool.ProgressFlag(),
		ViaFlag(),
	}, CheckpointFlags()...)
}

// StrideFlag returns --stride, for verbs that predict tokens.
func StrideFlag() tool.Flag {
	return tool.Flag{Name: "stride", Aliases: []string{"ppl-stride"}, Value: tool.Count, Unit: "tokens",
		Category: CategoryText, Effect: tool.SetsBytes,
		Usage: "let chunks overlap: each has -c + `N`/2 tokens, rounded up to a multiple of 256, begins N after the " +
			"one before, and its last N tokens are predicted"}
}

// ParseSpecialFlag returns --parse-special.
func ParseSpecialFlag() tool.Flag {
	return tool.Shared("parse-special", "parse names of control tokens in the text as these tokens").In(CategoryText)
}

// SourceFlag returns --source, for verbs that run encoder-decoders.
func SourceFlag() tool.Flag {
	f := tool.Shared("source",
		"run an encoder-decoder (T5): line i of -f is the text that the decoder is to say for line i of `FILE`")
	f.Category = CategoryText
	return f.OrRemote()
}

// ParseInput returns the values of EvaluateFlags.
func ParseInput(cmd *cli.Command) (in Input, err error) {
	in = Input{Escapes: cmd.Bool("escape"), Workers: tool.Workers(cmd), JSON: cmd.Bool("json")}
	if in.Escapes && cmd.Bool("no-escape") {
		return in, fault.Errorf(fault.Usage, "--escape and --no-escape: want one of them")
	}
	if in.File, err = tool.FileValue(cmd, "file"); err != nil {
		return in, err
	}
	if in.Text.Chunk, err = tool.CountValue(cmd, "ctx-size"); err != nil {
		return in, err
	}
	if in.Text.Chunks, err = tool.CountValue(cmd, "chunks"); err != nil {
		return in, err
	}
	if in.Text.Stride, err = tool.CountValue(cmd, "stride"); err != nil {
		return in, err
	}
	in.Text.ParseSpecial = cmd.Bool("parse-special")
	if in.Source, err = tool.FileValue(cmd, "source"); err != nil {
		return in, err
	}
	in.FileName, in.SourceName = tool.Address(cmd, in.File), tool.Address(cmd, in.Source)
	if in.Source != "" {
		for _, name := range []string{"ctx-size", "stride", "kl-divergence-base", "html", "part", "finish"} {
			if cmd.IsSet(name) {
				return in, fault.Errorf(fault.Usage, "--source and --%s: want one of them: with pairs of lines each line is "+
					"a chunk, and one process runs all", name)
			}
		}
	}
	if in.Cache, err = parseCache(cmd); err != nil {
		return in, err
	}
	if in.Chats, err = parseChats(cmd); err != nil {
		return in, err
	}
	if in.Chats != nil {
		in.Text.ParseSpecial = true
		in.Stream = cmd.String("loss") == ""
		if err := in.checkChats(cmd); err != nil {
			return in, err
		}
		if !in.Stream {
			in.Chats.Answers, in.Chats.Most = cmd.String("loss") != "all", in.Text.Chunks
			if cmd.IsSet("ctx-size") {
				in.Most = in.Text.Chunk
			}
		}
	}
	if in.Checkpoint, err = ParseCheckpoint(cmd); err != nil {
		return in, err
	}
	in.Show, err = tool.NewWork(cmd)
	return in, err
}

// NeedText returns an error of kind fault.Usage if there is no text.
func (in *Input) NeedText(cmd *cli.Command) error {
	if in.File == "" {
		return fault.Errorf(fault.Usage, "no text: name it with -f FILE (see %s --help)", cmd.FullName())
	}
	return nil
}
