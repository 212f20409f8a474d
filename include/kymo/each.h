/*
 * Applies a macro to each of up to 64 fields or labels at compile time: C's preprocessor has no
 * loops.
 *
 *     KYMO_INNER_EACH(WHAT, BETWEEN, net, (a), (b))      WHAT((a)) BETWEEN() WHAT((b))
 *
 * The first argument is the event's name, so that an event without fields is no special case:
 * standard C requires an argument for `...`.
 */
#ifndef KYMO_EACH_H
#define KYMO_EACH_H

#define KYMO_INNER_EACH(what, between, ...) \
    KYMO_INNER_EACH_(KYMO_INNER_COUNT(__VA_ARGS__), what, between, __VA_ARGS__)
#define KYMO_INNER_EACH_(count, what, between, ...) KYMO_INNER_EACH__(count, what, between, __VA_ARGS__)
#define KYMO_INNER_EACH__(count, what, between, ...) KYMO_INNER_EACH_##count(what, between, __VA_ARGS__)

#define KYMO_INNER_NOTHING()
#define KYMO_INNER_COMMA() ,
#define KYMO_INNER_PLUS() +

/* The first argument; another one follows it. */
#define KYMO_INNER_FIRST(first, ...) first
#define KYMO_INNER_SECOND(first, second, ...) second

/* Whether the argument is in parentheses, as fields are. */
#define KYMO_INNER_IS_FIELD(field) KYMO_INNER_IS_FIELD_(KYMO_INNER_PROBE field, 0, 0)
#define KYMO_INNER_IS_FIELD_(...) KYMO_INNER_SECOND(__VA_ARGS__)
#define KYMO_INNER_PROBE(...) 0, 1

/* Text of the macros' expansion. */
#define KYMO_INNER_QUOTED(...) KYMO_INNER_QUOTED_(__VA_ARGS__)
#define KYMO_INNER_QUOTED_(...) #__VA_ARGS__

/* Number of arguments: 1 to 65, or kymo_many up to 128. */
#define KYMO_INNER_COUNT(...) \
    KYMO_INNER_COUNT_( \
        __VA_ARGS__, \
        kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, \
        kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, \
        kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, \
        kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, \
        kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, \
        kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, \
        kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, kymo_many, 65, 64, \
        63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, \
        37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, \
        11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define KYMO_INNER_COUNT_( \
    _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, _17, _18, _19, _20, _21, _22, _23, _24, \
    _25, _26, _27, _28, _29, _30, _31, _32, _33, _34, _35, _36, _37, _38, _39, _40, _41, _42, _43, _44, _45, _46, \
    _47, _48, _49, _50, _51, _52, _53, _54, _55, _56, _57, _58, _59, _60, _61, _62, _63, _64, _65, _66, _67, _68, \
    _69, _70, _71, _72, _73, _74, _75, _76, _77, _78, _79, _80, _81, _82, _83, _84, _85, _86, _87, _88, _89, _90, \
    _91, _92, _93, _94, _95, _96, _97, _98, _99, _100, _101, _102, _103, _104, _105, _106, _107, _108, _109, _110, \
    _111, _112, _113, _114, _115, _116, _117, _118, _119, _120, _121, _122, _123, _124, _125, _126, _127, _128, \
    count, ...) \
    count

#define KYMO_INNER_EACH_kymo_many(what, between, name, ...) kymo_at_most_64_fields_or_labels

/* 1 if there are more arguments than 65, else 0. */
#define KYMO_INNER_IS_MANY(...) KYMO_INNER_IS_MANY_(KYMO_INNER_COUNT(__VA_ARGS__))
#define KYMO_INNER_IS_MANY_(count) KYMO_INNER_IS_MANY__(count)
#define KYMO_INNER_IS_MANY__(count) KYMO_INNER_IS_FIELD_(KYMO_INNER_MANY_##count, 0, 0)
#define KYMO_INNER_MANY_kymo_many 0, 1
#define KYMO_INNER_EACH_1(what, between, name)
#define KYMO_INNER_EACH_2(what, between, name, field) what(field)
#define KYMO_INNER_EACH_3(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_2(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_4(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_3(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_5(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_4(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_6(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_5(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_7(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_6(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_8(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_7(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_9(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_8(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_10(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_9(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_11(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_10(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_12(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_11(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_13(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_12(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_14(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_13(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_15(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_14(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_16(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_15(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_17(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_16(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_18(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_17(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_19(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_18(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_20(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_19(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_21(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_20(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_22(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_21(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_23(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_22(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_24(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_23(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_25(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_24(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_26(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_25(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_27(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_26(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_28(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_27(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_29(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_28(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_30(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_29(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_31(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_30(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_32(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_31(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_33(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_32(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_34(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_33(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_35(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_34(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_36(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_35(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_37(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_36(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_38(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_37(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_39(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_38(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_40(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_39(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_41(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_40(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_42(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_41(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_43(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_42(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_44(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_43(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_45(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_44(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_46(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_45(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_47(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_46(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_48(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_47(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_49(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_48(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_50(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_49(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_51(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_50(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_52(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_51(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_53(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_52(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_54(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_53(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_55(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_54(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_56(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_55(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_57(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_56(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_58(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_57(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_59(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_58(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_60(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_59(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_61(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_60(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_62(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_61(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_63(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_62(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_64(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_63(what, between, name, __VA_ARGS__)
#define KYMO_INNER_EACH_65(what, between, name, field, ...) what(field) between() KYMO_INNER_EACH_64(what, between, name, __VA_ARGS__)

#endif
