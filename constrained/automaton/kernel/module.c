/* What Python sees: constrained.automaton._kernel. */
#include "kernel.h"

#define AS_STRING(token) #token
#define STRING(macro) AS_STRING(macro)

/* what is asked of Python, by names made once */
PyObject *name_enter, *name_capped, *name_number, *name_construct, *name_frame, *name_node, *name_env, *name_next, *name_ways, *name_item, *name_low, *name_high;
PyObject *name_data, *name_chars, *name_items, *name_args, *name_rule, *name_rules, *name_distinct, *name_grammar, *name_body, *name_values;
PyObject *name_zero, *no_arguments;

static PyTypeObject *add(PyObject *module, const char *name, PyType_Spec *spec) {
    PyObject *type = PyType_FromSpec(spec);
    if (type && PyModule_AddObjectRef(module, name, type) < 0) Py_CLEAR(type);
    return (PyTypeObject *)type; /* kept for as long as the process lives */
}

static int execute(PyObject *module) {
    if (TokensType) {
        PyErr_SetString(PyExc_ImportError, "the kernel can be loaded only once in a process");
        return -1;
    }
    const struct {
        PyObject **at;
        const char *name;
    } names[] = {
        {&name_enter, "enter"}, {&name_capped, "capped"}, {&name_number, "number"}, {&name_construct, "construct"},
        {&name_frame, "frame"}, {&name_node, "node"}, {&name_env, "env"}, {&name_next, "next"}, {&name_ways, "ways"}, {&name_item, "item"}, {&name_low, "low"}, {&name_high, "high"},
        {&name_data, "data"}, {&name_chars, "chars"}, {&name_items, "items"}, {&name_args, "args"}, {&name_rule, "rule"},
        {&name_rules, "rules"}, {&name_distinct, "distinct"}, {&name_grammar, "grammar"}, {&name_body, "body"}, {&name_values, "values"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(*names[i].at = PyUnicode_InternFromString(names[i].name))) return -1;
    if (!(name_zero = PyLong_FromLong(0)) || !(no_arguments = PyTuple_New(0))) return -1;
    if (!(TokensType = add(module, "Tokens", &tokens_spec)) || !(EngineType = add(module, "Engine", &engine_spec)) ||
        !(CoreType = add(module, "Core", &core_spec)) || !add(module, "Rows", &rows_spec))
        return -1;
    if (PyModule_AddIntConstant(module, "MAX_EOS", MAX_EOS) < 0) return -1;
    return PyModule_AddStringConstant(module, "SOURCES", STRING(KERNEL_SOURCES));
}

/* Types and names are static, and the engine's tables are guarded by nothing but the GIL. */
static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)execute},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_kernel", "The engine's hot loops; constrained.automaton does without them where they aren't built.",
    0, NULL, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void) {
    return PyModuleDef_Init(&definition);
}
