// Package chat makes texts of conversations with a model's own chat template.
//
//	GGUF file   FromMetadata    tokenizer.chat_template, tokenizer.chat_template.NAME, special tokens by their ids
//	checkpoint  FromCheckpoint  tokenizer_config.json, chat_template.jinja, special_tokens_map.json
//
// A template sees what apply_chat_template of the library transformers gives it: messages, tools and documents (None
// where there are none), add_generation_prompt, the texts of special tokens (bos_token, eos_token) and what the caller
// adds. PromptFormat is the form of a prompt for people.
package chat
