package torch

// Instructions of pickles, by the names that pickletools gives them.
const (
	opMark            = '('
	opStop            = '.'
	opPop             = '0'
	opPopMark         = '1'
	opBinFloat        = 'G'
	opBinInt          = 'J'
	opBinInt1         = 'K'
	opBinInt2         = 'M'
	opNone            = 'N'
	opBinPersID       = 'Q'
	opReduce          = 'R'
	opBinString       = 'T'
	opShortBinString  = 'U'
	opBinUnicode      = 'X'
	opAppend          = 'a'
	opBuild           = 'b'
	opGlobal          = 'c'
	opEmptyDict       = '}'
	opAppends         = 'e'
	opBinGet          = 'h'
	opLongBinGet      = 'j'
	opEmptyList       = ']'
	opBinPut          = 'q'
	opLongBinPut      = 'r'
	opSetItem         = 's'
	opTuple           = 't'
	opEmptyTuple      = ')'
	opSetItems        = 'u'
	opProto           = 0x80
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opShortBinUnicode = 0x8c
	opBinUnicode8     = 0x8d
	opStackGlobal     = 0x93
	opMemoize         = 0x94
	opFrame           = 0x95
)

// width is the size of the number that follows an instruction, or of the length of
// its text.
var width = [256]uint64{
	opBinInt: 4, opBinInt1: 1, opBinInt2: 2,
	opBinUnicode: 4, opShortBinUnicode: 1, opBinUnicode8: 8, opBinString: 4, opShortBinString: 1,
	opBinPut: 1, opLongBinPut: 4, opBinGet: 1, opLongBinGet: 4,
}

// otherInstructions are the names of unsupported instructions.
var otherInstructions = map[byte]string{
	'2': "DUP", 'F': "FLOAT", 'I': "INT", 'L': "LONG", 'P': "PERSID", 'S': "STRING", 'V': "UNICODE", 'd': "DICT",
	'g': "GET", 'i': "INST", 'l': "LIST",
	'o': "OBJ", 'p': "PUT", 'B': "BINBYTES", 'C': "SHORT_BINBYTES", 0x81: "NEWOBJ", 0x82: "EXT1", 0x83: "EXT2",
	0x84: "EXT4", 0x8b: "LONG4",
	0x8e: "BINBYTES8", 0x8f: "EMPTY_SET", 0x90: "ADDITEMS", 0x91: "FROZENSET", 0x92: "NEWOBJ_EX", 0x96: "BYTEARRAY8",
	0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
}
