package vocab

import (
	"maps"
	"slices"
	"sync"

	"ggforge/fault"
)

// pretokenizer has the splits of a byte-level vocabulary before merges, and other properties of a tokenizer.ggml.pre.
type pretokenizer struct {
	steps  []string // expressions, applied one after the other to the pieces of the one before
	whole  bool     // a piece that is a token is not split
	bos    bool     // default of add_bos_token: BOS is put before a text
	noBOS  bool     // there is no BOS token unless the file has its id
	sep    bool     // default of add_sep_token: a separator is added
	raw    bool     // tokens are plain text, not in byte-level characters
	blanks bool     // a blank is ▁ in tokens
	lines  bool     // line feeds alone are one token if there is one
	starts bool     // every ▁ begins a piece, and so does every line, with ▁ put before it
	always bool     // BOS is put before a text whatever add_bos_token is
	keep   bool     // letters keep their case
}

const (
	contractions = `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])`
	ends         = ` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	slashEnds    = ` ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	cased        = `[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+`
	casedUpper   = `[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))+((?=[\p{L}])([^A-Z]))*`
	casedM       = `[^\r\n\p{L}\p{N}]?((?=[\p{L}\p{M}])([^a-z]))*((?=[\p{L}\p{M}])([^A-Z]))+`
	casedUpperM  = `[^\r\n\p{L}\p{N}]?((?=[\p{L}\p{M}])([^a-z]))+((?=[\p{L}\p{M}])([^A-Z]))*`
	anyCase      = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	anyCaseUpper = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
	asciiWord    = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
	markedWords  = asciiWord + `|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+`

	gpt2   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)`
	llama3 = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|` + ends
	qwen2  = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|` + ends
	qwen35 = contractions +
		`|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	horizon = contractions + `|[^\r\n\p{L}\p{N}]?(?:\p{L}|\p{M}|\u200C|\u200D)+|\p{N}{1,3}|` + ends
	jais2   = contractions +
		`|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`
	minicpm5   = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|` + ends
	gpt4o      = cased + contractions + `?|` + casedUpper + contractions + `?|\p{N}{1,3}|` + slashEnds
	graniteEmb = casedM + contractions + `?|` + casedUpperM + contractions + `?|\p{N}{1,3}|` + slashEnds
	tekken     = cased + `|` + casedUpper + `|\p{N}|` + slashEnds
	aya        = anyCase + contractions + `?|` + anyCaseUpper + contractions + `?|\p{N}{1,3}|` + slashEnds
	youtu      = anyCase + contractions + `?|` + anyCaseUpper + contractions + `?|\p{N}|` + slashEnds
	ling       = `'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	seedCoder  = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`
	ufakzeka   = `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|` + ends
	exaoneMoE  = contractions +
		`|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`
	deepseek3 = markedWords + `| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	spark     = markedWords + `| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+`

	han         = `\p{Han}+`                // Kimi K2: stands for hand-written code of the runtime with more rules
	digitThrees = `\p{AFMoE_digits}`        // the runtime's own code
	ayaThrees   = `\d{1,3}(?=(?:\d{3})*\b)` // the same
	eachLine    = `[^\n]+|[\n]+`
	cjk         = `[一-龥぀-ゟ゠-ヿ]+`
	oldCJK      = `[一-龥ࠀ-一가-퟿]+`
	asian       = `[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+`
	youtuAsian  = `[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+`
	oldLetters  = `\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1F7D}ᾀ-ᾴᾶ-ᾼ\x{1FBE}ῂ-ῄῆ-ῌῐ-\x{1FD3}ῖ-\x{1FDB}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\x{2126}ℨ\x{212A}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+`
	oldPuncts   = `\s?[!-/:-~！-／：-～‘-‟　-。]+`
	notPunct    = ` ?[^(\s|.,!?…。，、।۔،)]+`
	symbols     = `[\p{P}\$\+<=>\^~\|]+`
	symbolsTick = "[\\p{P}\\$\\+<=>\\^~\\|`]+"
	threeDigits = `[0-9][0-9][0-9]`
)

// byHand are the expressions that the runtime implements by hand-written splitters.
var byHand = map[string]splitter{
	gpt2:        gpt2Words{},
	llama3:      words{digits: 3, letters: letter, not: space | letter | number},
	qwen2:       words{digits: 1, letters: letter, not: space | letter | number},
	qwen35:      words{digits: 1, letters: letter | mark, not: space | letter | mark | number},
	horizon:     words{digits: 3, letters: letter | mark, not: space | letter | number, joiners: true},
	han:         kimiWords{},
	digitThrees: threes{},
	ayaThrees:   threes{},
	eachLine:    lines{},
}

// pretokenizers has the values of tokenizer.ggml.pre in the runtime (llama.cpp 0.7.0).
var pretokenizers = map[string]pretokenizer{
	"":            {steps: []string{symbols, gpt2, `\p{N}+`, threeDigits}},
	"default":     {steps: []string{symbols, gpt2, `\p{N}+`, threeDigits}},
	"a.x-4.0":     {steps: []string{gpt2}},
	"afmoe":       {steps: []string{digitThrees, asian, deepseek3}},
	"bailingmoe":  {steps: []string{ling}},
	"bailingmoe2": {steps: []string{ling}},
	"bloom":       {steps: []string{notPunct}},
	"chameleon": {steps: []string{`<sentinel:[0-9]+>`, `(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z`,
		`([\t\n]|    |  )`, `\p{N}`, "[\\p{P}!-/:-@\\[-`{-~]", gpt2}, bos: true},
	"chatglm-bpe":              {steps: []string{llama3}, noBOS: true},
	"codeshell":                {steps: []string{`\p{N}`, gpt2}},
	"cohere2moe":               {steps: []string{ayaThrees, aya}},
	"command-r":                {steps: []string{`\p{N}`, gpt2}},
	"dbrx":                     {steps: []string{llama3}},
	"deepseek-coder":           {steps: []string{`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, oldCJK, `\p{N}`}},
	"deepseek-llm":             {steps: []string{`[\r\n]`, oldLetters, oldPuncts, `\s+$`, oldCJK, `\p{N}+`}},
	"deepseek-r1-qwen":         {steps: []string{qwen2}},
	"deepseek-v3":              {steps: []string{`\p{N}{1,3}`, cjk, deepseek3}},
	"exaone":                   {steps: []string{`\p{N}`, gpt2}},
	"exaone-moe":               {steps: []string{exaoneMoE}},
	"exaone4":                  {steps: []string{gpt2}},
	"f2llmv2":                  {steps: []string{qwen2}},
	"falcon":                   {steps: []string{symbolsTick, gpt2, threeDigits}},
	"falcon-h1":                {steps: []string{llama3}, whole: true, bos: true},
	"falcon3":                  {steps: []string{llama3}, whole: true, bos: true},
	"gemma4":                   {steps: []string{eachLine}, raw: true, blanks: true, lines: true, always: true},
	"gigachat":                 {steps: []string{gpt2}},
	"glm4":                     {steps: []string{llama3}, noBOS: true, whole: true},
	"glm5":                     {steps: []string{llama3}, noBOS: true, whole: true},
	"gpt-2":                    {steps: []string{gpt2}},
	"gpt-4o":                   {steps: []string{gpt4o}},
	"gpt3-finnish":             {steps: []string{notPunct}},
	"granite-docling":          {steps: []string{gpt2}},
	"granite-embed-multi-311m": {steps: []string{eachLine}, raw: true, blanks: true, lines: true, always: true},
	"granite-embed-multi-97m":  {steps: []string{graniteEmb}, whole: true},
	"grok-2":                   {steps: []string{qwen2}},
	"hunyuan":                  {steps: []string{qwen2}},
	"hunyuan-dense":            {steps: []string{`\p{N}{1,3}`, cjk, deepseek3}},
	"hy_v4":                    {steps: []string{`\p{N}{1,3}`, cjk, deepseek3}},
	"jais":                     {steps: []string{gpt2}},
	"jais-2":                   {steps: []string{jais2}},
	"jina-de":                  {steps: []string{gpt2}},
	"jina-es":                  {steps: []string{gpt2}},
	"jina-v1-en":               {steps: []string{gpt2}, sep: true},
	"jina-v2-code":             {steps: []string{gpt2}, sep: true},
	"jina-v2-de":               {steps: []string{gpt2}},
	"jina-v2-es":               {steps: []string{gpt2}},
	"jina-v5-nano":             {steps: []string{llama3}, whole: true, bos: true},
	"joyai-llm":                {steps: []string{`\p{N}{1,3}`, cjk, deepseek3}},
	"k2-horizon":               {steps: []string{horizon}},
	"kanana2":                  {steps: []string{gpt4o}},
	"kimi-k2":                  {steps: []string{han}},
	"kormo":                    {steps: []string{qwen2}},
	"laguna":                   {steps: []string{eachLine, qwen2}},
	"lfm2":                     {steps: []string{llama3}, whole: true, bos: true},
	"llada-moe":                {steps: []string{ling}},
	"llama-bpe":                {steps: []string{llama3}, whole: true, bos: true},
	"llama-v3":                 {steps: []string{llama3}, whole: true, bos: true},
	"llama3":                   {steps: []string{llama3}, whole: true, bos: true},
	"llama4":                   {steps: []string{gpt4o}},
	"megrez":                   {steps: []string{qwen2}},
	"mellum":                   {steps: []string{gpt2}},
	"mellum2":                  {steps: []string{`\p{N}`, gpt2}},
	"midm-2.0":                 {steps: []string{llama3}, whole: true, bos: true},
	"minerva-7b":               {steps: []string{`\p{N}`, gpt2}},
	"minicpm5":                 {steps: []string{`\p{N}{1,3}`, minicpm5}, whole: true},
	"minimax-m2":               {steps: []string{gpt4o}},
	"mmbert":                   {steps: []string{eachLine}, raw: true, blanks: true, lines: true, starts: true},
	"modern-bert":              {steps: []string{gpt2}},
	"mpt":                      {steps: []string{gpt2}},
	"olmo":                     {steps: []string{gpt2}},
	"phi-2":                    {steps: []string{gpt2}},
	"pixtral":                  {steps: []string{llama3}, whole: true, bos: true},
	"poro-chat":                {steps: []string{notPunct}},
	"qwen2":                    {steps: []string{qwen2}},
	"qwen35":                   {steps: []string{qwen35}},
	"refact":                   {steps: []string{`\p{N}`, gpt2}},
	"roberta-bpe":              {steps: []string{gpt2}, sep: true},
	"sarvam-moe":               {steps: []string{eachLine}, raw: true, blanks: true},
	"seed-coder":               {steps: []string{seedCoder}},
	"smaug-bpe":                {steps: []string{llama3}},
	"smollm":                   {steps: []string{`\p{N}`, gpt2}},
	"solar-open":               {steps: []string{qwen2}},
	"spark2_5":                 {steps: []string{`\p{N}{1,3}`, cjk, spark, `\p{N}`}},
	"stablelm2":                {steps: []string{qwen2}},
	"starcoder":                {steps: []string{`\p{N}`, gpt2}},
	"superbpe":                 {steps: []string{`\p{N}+`, `(?=(\d{3})+(?!\d))`}},
	"talkie":                   {steps: []string{gpt4o}},
	"tekken":                   {steps: []string{tekken}, whole: true, bos: true},
	"tiny_aya":                 {steps: []string{ayaThrees, aya}},
	"trillion":                 {steps: []string{gpt2}},
	"ufakzeka":                 {steps: []string{ufakzeka}},
	"viking":                   {steps: []string{notPunct, `\p{N}`}},
	"whitespace":               {steps: []string{`\S+`}, raw: true, keep: true},
	"youtu":                    {steps: []string{youtuAsian, youtu}, whole: true},
}

// Pretokenizers returns the values of tokenizer.ggml.pre that are known, sorted; one
// that is missing counts as the empty one.
func Pretokenizers() []string { return slices.Sorted(maps.Keys(pretokenizers)) }

var (
	compiledMu sync.Mutex
	compiled   = map[string]splitter{} // of the expressions of the table
)

// splitters returns the splitters of the steps.
func (p pretokenizer) splitters() ([]splitter, error) {
	compiledMu.Lock()
	defer compiledMu.Unlock()
	var out []splitter
	for _, text := range p.steps {
		s := byHand[text]
		if s == nil {
			s = compiled[text]
		}
		if s == nil {
			e, err := newExpression(text)
			if err != nil {
				return nil, fault.Errorf(fault.Unsupported, "pre-tokenizer: %w", err)
			}
			compiled[text], s = e, e
		}
		out = append(out, s)
	}
	return out, nil
}
