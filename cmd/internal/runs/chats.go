package runs

import (
	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/eval/texts"
	"ggforge/fault"
	"ggforge/internal/text/pyjson"
)

// ChatFlags returns the flags about a text that is conversations.
func ChatFlags() []tool.Flag {
	list := tool.Group(CategoryText,
		tool.Shared("chats", "the text is conversations in JSON, one a line: the model's chat template makes texts of them"),
		TemplateFlag(),
		TemplateArgumentsFlag(),
	)
	for i := range list[1:] {
		list[1+i].With = []string{"chats"}
	}
	return list
}

// lossFlag returns --loss, for verbs that predict the tokens of conversations.
func lossFlag() tool.Flag {
	return tool.Flag{Name: "loss", Value: tool.Text, Default: "assistant", Choices: tool.Names("assistant", "all"),
		Category: CategoryText, Effect: tool.SetsBytes, With: []string{"chats"},
		Usage: "of conversations, predict the tokens of `WHOM`: assistant, or all, the tokens of all messages and of the " +
			"template"}
}

// TemplateFlag returns the flag that chooses among the chat templates of a model.
func TemplateFlag() tool.Flag {
	return tool.Flag{Name: "template", Value: tool.Text, Effect: tool.SetsBytes,
		Usage: "use the chat template `NAME` (default: tool_use with tools if there is one, else the default one)"}
}

// TemplateArgumentsFlag returns --template-arguments.
func TemplateArgumentsFlag() tool.Flag {
	return tool.Shared("template-arguments", "set variables of the chat template to the members of `JSON`, an object")
}

// TemplateArguments returns the value of --template-arguments, nil for none.
func TemplateArguments(cmd *cli.Command) (*pyjson.Object, error) {
	text := cmd.String("template-arguments")
	if text == "" {
		return nil, nil
	}
	v, err := pyjson.Parse([]byte(text))
	o, ok := v.(*pyjson.Object)
	if err != nil || !ok {
		return nil, fault.Errorf(fault.Usage, "--template-arguments %s: want a JSON object", pyjson.Quote(text))
	}
	return o, nil
}

// parseChats returns the values of ChatFlags, nil without --chats.
func parseChats(cmd *cli.Command) (*texts.ChatOptions, error) {
	if !cmd.Bool("chats") {
		return nil, nil
	}
	arguments, err := TemplateArguments(cmd)
	return &texts.ChatOptions{Template: cmd.String("template"), Variables: arguments}, err
}

// checkChats refuses flags that do not go with --chats.
func (in *Input) checkChats(cmd *cli.Command) error {
	names := []string{"escape", "source", "stride", "kl-divergence-base"}
	if !in.Stream {
		names = append(names, "save-logits", "part", "finish")
	}
	for _, name := range names {
		if cmd.IsSet(name) {
			return fault.Errorf(fault.Usage, "--chats and --%s: want one of them: for a text in one piece see "+
				"ggtool render --chats", name)
		}
	}
	return nil
}
