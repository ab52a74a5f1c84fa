/* What Python sees: constrained.automaton._kernel. */
#include "kernel.h"

#define AS_STRING(token) #token
#define STRING(macro) AS_STRING(macro)

PyObject *name_enter, *name_capped, *name_number, *name_near; /* what is asked of Python, by names made once */

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_kernel", "The engine's hot loops; constrained.automaton does without them where they aren't built.",
    -1, NULL, NULL, NULL, NULL, NULL,
};

static PyTypeObject *add(PyObject *module, const char *name, PyType_Spec *spec) {
    PyObject *type = PyType_FromSpec(spec);
    if (type && PyModule_AddObjectRef(module, name, type) < 0) Py_CLEAR(type);
    return (PyTypeObject *)type; /* kept for as long as the process lives */
}

PyMODINIT_FUNC PyInit__kernel(void) {
    name_enter = PyUnicode_InternFromString("enter");
    name_capped = PyUnicode_InternFromString("capped");
    name_near = PyUnicode_InternFromString("near");
    name_number = PyUnicode_InternFromString("number");
    PyObject *module = name_enter && name_capped && name_number && name_near ? PyModule_Create(&definition) : NULL;
    if (!module) return NULL;
    if (!(TokensType = add(module, "Tokens", &tokens_spec)) || !(EngineType = add(module, "Engine", &engine_spec)) ||
        !(CoreType = add(module, "Core", &core_spec)) || !add(module, "Rows", &rows_spec))
        Py_CLEAR(module);
    if (module && PyModule_AddIntConstant(module, "MAX_EOS", MAX_EOS) < 0) Py_CLEAR(module);
    if (module && PyModule_AddStringConstant(module, "SOURCES", STRING(KERNEL_SOURCES)) < 0) Py_CLEAR(module);
    return module;
}
