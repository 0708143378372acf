package chat_test

import (
	"context"
	"fmt"

	"ggforge/gguf"
	"ggforge/tokenizer/chat"
)

func Example() {
	var m gguf.Metadata // of a file
	m.Set("tokenizer.chat_template", gguf.String(
		"{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"+
			"{% if add_generation_prompt %}<assistant>{% endif %}"))
	ctx := context.Background()
	list, err := chat.FromMetadata(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := list.For(false).Render(ctx, chat.Input{
		Messages:            []any{chat.Message("user", "What does defer do?")},
		AddGenerationPrompt: true,
	})
	fmt.Printf("%q %v\n", text.Text, err)
	form, ok, err := chat.PromptFormat(ctx, m)
	fmt.Printf("%q %v %v\n", form, ok, err)
	// Output:
	// "<user>What does defer do?\n<assistant>" <nil>
	// "<system>{system_prompt}\n<user>{prompt}\n<assistant>" true <nil>
}
